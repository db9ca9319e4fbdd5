#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now refold-retain.timer refold-retain.service refold-serve.service 'refold-bridge@*.service' refold-session-actor.service
fi
