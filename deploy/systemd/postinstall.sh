#!/bin/sh
set -e
systemd-sysusers refold.conf
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
