"""Asks a session, prints what happens, and lets you decide over calls that need a person:

    python3 chat.py SESSION TEXT

The same text in the same session is the same run, so it goes on where it was.
"""
import hashlib
import os
import sys

import refold


def main() -> None:
    server = refold.Refold(os.environ.get("REFOLD_URL", "http://127.0.0.1:8080"), token=os.environ.get("REFOLD_TOKEN"))
    session = server.session(sys.argv[1])
    run = session.ask(sys.argv[2], submission=hashlib.sha256(sys.argv[2].encode()).hexdigest())
    for u in run.updates():
        match u.type:
            case "text":
                print(u.delta, end="", flush=True)
            case "tool_asked":
                print(f"[calls {u.call.tool} {u.call.arguments}]")
            case "approval_asked":
                for approval in session.approvals():
                    decide(session, approval)
    print()
    run.wait()


def decide(session: refold.Session, approval: refold.Approval) -> None:
    if input(f"Allow {approval.tool} {approval.arguments}? [y/n] ") == "y":
        session.approve(approval)
    else:
        session.deny(approval, reason="the person said no")


main()
