"""The scenarios that clients of all languages play, with the same output:

    REFOLD_URL=… REFOLD_TOKEN=… REFOLD_OTHER_TOKEN=… REFOLD_CUT_URL=… python3 ascenarios.py

The agent helper does what a request says. The streams of REFOLD_CUT_URL are cut after each
event. scenarios.py is the same without asyncio.
"""

import asyncio
import os

from refold import AsyncRefold, ProblemError, RunError

refold = AsyncRefold(os.environ["REFOLD_URL"], os.environ["REFOLD_TOKEN"])
helper = refold.agent("helper")
SIGN = 'call form_sign {"text":"A"}'


async def ask_and_stream():
    run = await helper.session("ask").ask('call weather_get {"city":"Bergen"}')
    await show(run.updates())
    answer = await run.wait()
    print("answer", answer.text, answer.turns, ",".join(call.status for call in answer.calls))


async def the_same_submission_again():
    session = helper.session("again")
    first = await session.ask("say One.", submission="order-7")
    second = await session.ask("say One.", submission="order-7")
    print("runs", first.number, second.number, (await second.wait()).text)
    await refused(lambda: session.ask("say Two.", submission="order-7"))


async def steer():
    session = helper.session("steer")
    run = await session.ask(SIGN)
    approval = await asked(run)
    steered = await session.steer("say Steered.")
    print("runs", run.number, steered.number)
    await session.approve(approval)
    print("answer", (await run.wait()).text)


async def pause_and_resume():
    session = helper.session("pause")
    run = await session.ask(SIGN)
    approval = await asked(run)
    await session.pause("lunch")
    print("state", (await run.state()).lifecycle)
    await session.approve(approval)
    await session.resume()
    print("answer", (await run.wait()).text)
    await show(run.updates())
    await refused(lambda: session.resume())


async def approve_with_other_arguments():
    session = helper.session("approve")
    run = await session.ask(SIGN)
    approval = await asked(run)
    print("approval", approval.call, approval.tool, approval.arguments)
    await session.approve(approval, arguments='{"text":"B"}')
    print("answer", (await run.wait()).text)
    await refused(lambda: session.approve(approval))


async def deny():
    session = helper.session("deny")
    run = await session.ask(SIGN)
    await session.deny(await asked(run), reason="not this form")
    await show(run.updates())


async def cancel():
    session = helper.session("cancel")
    run = await session.ask(SIGN)
    await asked(run)
    queued = await session.ask("say Next.")
    await run.cancel("enough")
    await failed(run)
    print("answer", (await queued.wait()).text)
    await refused(lambda: run.cancel())


async def a_lost_connection():
    cut = AsyncRefold(os.environ["REFOLD_CUT_URL"], os.environ["REFOLD_TOKEN"])
    run = await cut.agent("helper").session("cut").ask('call weather_get {"city":"Oslo"}')
    await show(run.updates())
    following = await cut.session("cut").ask("count 30")
    await show(following.updates())
    await show(until(cut.session("cut").updates(after="start"), following.number))


async def a_run_that_fails():
    run = await helper.session("fail").ask("fail no_luck It went wrong.")
    await show(run.updates())
    await failed(run)
    await refused(lambda: refold.agent("nobody").session("fail").ask("say Hello."))
    await refused(lambda: refold.session("fail").run(9).wait())
    await refused(lambda: AsyncRefold(os.environ["REFOLD_URL"], "wrong").approvals())


async def two_tenants():
    other = AsyncRefold(os.environ["REFOLD_URL"], os.environ["REFOLD_OTHER_TOKEN"])
    await refused(lambda: other.session("ask").view())
    run = await other.agent("helper").session("ask").ask("say Hello.")
    print("answer", run.number, (await run.wait()).text)
    signing = await helper.session("theirs").ask(SIGN)
    await asked(signing)
    print("theirs", await listed(refold, 10))
    print("theirs", await listed(refold, 1, name="thei", waits_for="approval"))
    print("others", await listed(other, 1))
    print("others", len(await other.approvals()))


async def show(updates):
    """Prints updates, each turn's text as one."""
    text = ""
    async for u in updates:
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


async def until(updates, run):
    """Yields updates until a run ends."""
    async for u in updates:
        yield u
        if u.type == "run_ended" and u.run == run:
            return


async def asked(run):
    """Returns the approval for which a run waits."""
    async for u in run.updates():
        if u.type == "approval_asked":
            break
    return (await run.session.approvals())[0]


async def listed(of, number, **options):
    """Lists a number of sessions: a list may be a moment behind."""
    while True:
        ids = [row.session async for row in of.sessions(**options)]
        if len(ids) >= number:
            return " ".join(sorted(ids))


async def refused(request):
    try:
        await request()
        print("not refused")
    except ProblemError as error:
        print("refused", error.status, error.code)


async def failed(run):
    try:
        print("answer", (await run.wait()).text)
    except RunError as error:
        print("failed", error.lifecycle, error.code, error.detail)


async def main():
    for play in [ask_and_stream, the_same_submission_again, steer, pause_and_resume, approve_with_other_arguments, deny,
                 cancel, a_lost_connection, a_run_that_fails, two_tenants]:
        print("#", play.__name__.replace("_", " "))
        await play()


asyncio.run(main())
