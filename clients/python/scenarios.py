"""The scenarios that clients of all languages play, with the same output:

    REFOLD_URL=… REFOLD_TOKEN=… REFOLD_OTHER_TOKEN=… REFOLD_CUT_URL=… python3 scenarios.py

The agent helper does what a request says. The streams of REFOLD_CUT_URL are cut after each
event. Written by generate.py from ascenarios.py. Do not edit it.
"""

import os

from refold import Refold, ProblemError, RunError

refold = Refold(os.environ["REFOLD_URL"], os.environ["REFOLD_TOKEN"])
helper = refold.agent("helper")
SIGN = 'call form_sign {"text":"A"}'


def ask_and_stream():
    run = helper.session("ask").ask('call weather_get {"city":"Bergen"}')
    show(run.updates())
    answer = run.wait()
    print("answer", answer.text, answer.turns, ",".join(call.status for call in answer.calls))


def the_same_submission_again():
    session = helper.session("again")
    first = session.ask("say One.", submission="order-7")
    second = session.ask("say One.", submission="order-7")
    print("runs", first.number, second.number, (second.wait()).text)
    refused(lambda: session.ask("say Two.", submission="order-7"))


def steer():
    session = helper.session("steer")
    run = session.ask(SIGN)
    approval = asked(run)
    steered = session.steer("say Steered.")
    print("runs", run.number, steered.number)
    session.approve(approval)
    print("answer", (run.wait()).text)


def pause_and_resume():
    session = helper.session("pause")
    run = session.ask(SIGN)
    approval = asked(run)
    session.pause("lunch")
    print("state", (run.state()).lifecycle)
    session.approve(approval)
    session.resume()
    print("answer", (run.wait()).text)
    show(run.updates())
    refused(lambda: session.resume())


def approve_with_other_arguments():
    session = helper.session("approve")
    run = session.ask(SIGN)
    approval = asked(run)
    print("approval", approval.call, approval.tool, approval.arguments)
    session.approve(approval, arguments='{"text":"B"}')
    print("answer", (run.wait()).text)
    refused(lambda: session.approve(approval))


def deny():
    session = helper.session("deny")
    run = session.ask(SIGN)
    session.deny(asked(run), reason="not this form")
    show(run.updates())


def cancel():
    session = helper.session("cancel")
    run = session.ask(SIGN)
    asked(run)
    queued = session.ask("say Next.")
    run.cancel("enough")
    failed(run)
    print("answer", (queued.wait()).text)
    refused(lambda: run.cancel())


def a_lost_connection():
    cut = Refold(os.environ["REFOLD_CUT_URL"], os.environ["REFOLD_TOKEN"])
    run = cut.agent("helper").session("cut").ask('call weather_get {"city":"Oslo"}')
    show(run.updates())
    following = cut.session("cut").ask("count 30")
    show(following.updates())
    show(until(cut.session("cut").updates(after="start"), following.number))


def a_run_that_fails():
    run = helper.session("fail").ask("fail no_luck It went wrong.")
    show(run.updates())
    failed(run)
    refused(lambda: refold.agent("nobody").session("fail").ask("say Hello."))
    refused(lambda: refold.session("fail").run(9).wait())
    refused(lambda: Refold(os.environ["REFOLD_URL"], "wrong").approvals())


def two_tenants():
    other = Refold(os.environ["REFOLD_URL"], os.environ["REFOLD_OTHER_TOKEN"])
    refused(lambda: other.session("ask").view())
    run = other.agent("helper").session("ask").ask("say Hello.")
    print("answer", run.number, (run.wait()).text)
    signing = helper.session("theirs").ask(SIGN)
    asked(signing)
    print("theirs", listed(refold, 10))
    print("theirs", listed(refold, 1, name="thei", waits_for="approval"))
    print("others", listed(other, 1))
    print("others", len(other.approvals()))


def show(updates):
    """Prints updates, each turn's text as one."""
    text = ""
    for u in updates:
        if u.type == "text":
            text += u.delta
        if u.type == "text_restarted":
            text = ""
        if u.type in ("text", "text_restarted", "waiting"):
            continue
        if text:
            print("  text", text.strip())
        text = ""
        call = [u.call.tool, u.call.status, u.call.code] if u.call else []
        print(" ", *(x for x in [u.type, u.run, *call, u.decision, u.reason, u.lifecycle, u.code] if x))


def until(updates, run):
    """Yields updates until a run ends."""
    for u in updates:
        yield u
        if u.type == "run_ended" and u.run == run:
            return


def asked(run):
    """Returns the approval for which a run waits."""
    for u in run.updates():
        if u.type == "approval_asked":
            break
    return (run.session.approvals())[0]


def listed(of, number, **options):
    """Lists a number of sessions: a list may be a moment behind."""
    while True:
        ids = [row.session for row in of.sessions(**options)]
        if len(ids) >= number:
            return " ".join(sorted(ids))


def refused(request):
    try:
        request()
        print("not refused")
    except ProblemError as error:
        print("refused", error.status, error.code)


def failed(run):
    try:
        print("answer", (run.wait()).text)
    except RunError as error:
        print("failed", error.lifecycle, error.code, error.detail)


def main():
    for play in [ask_and_stream, the_same_submission_again, steer, pause_and_resume, approve_with_other_arguments, deny,
                 cancel, a_lost_connection, a_run_that_fails, two_tenants]:
        print("#", play.__name__.replace("_", " "))
        play()


main()
