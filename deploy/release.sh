#!/usr/bin/env bash
# Writes a release into a directory: for each platform an archive with the
# programs, for Linux also a Debian package, and SHA256SUMS. The same commit and
# the same version of Go give the same bytes, in any checkout.
#
#   deploy/release.sh VERSION DIRECTORY NFPM PROGRAM=FOLDER…
#
# VERSION is a tag such as v0.1.0; the v may be left out. NFPM is the program that writes packages.
# PLATFORMS, such as "linux/amd64", builds for these alone.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v${1#v} dist=$2 nfpm=$3
shift 3
export TZ=UTC LC_ALL=C CGO_ENABLED=0 GOFLAGS=
# Times of files are that of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
umask 022
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for platform in ${PLATFORMS:-linux/amd64 linux/arm64 darwin/arm64}; do
	os=${platform%/*} arch=${platform#*/}
	name=refold_${version#v}_${os}_$arch
	at=$work/$name
	mkdir -p "$at/bin"
	for program in "$@"; do
		echo "$platform ${program%=*}"
		GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
			-ldflags "-s -w -X github.com/refold/refold/cmd/settings.version=$version" -o "$at/bin/${program%=*}" "./cmd/${program#*=}"
	done
	cp LICENSE README.md CHANGELOG.md streams.conf "$at"
	if [ "$os" = linux ]; then
		cp -r deploy/systemd deploy/retain.yaml "$at"
	fi
	find "$at" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$name" | gzip -n >"$dist/$name.tar.gz"
	if [ "$os" = linux ]; then
		ARCH=$arch VERSION=${version#v} AT=$at "$nfpm" package --config deploy/nfpm.yaml --packager deb --target "$dist/refold_${version#v}_$arch.deb"
	fi
done
cd "$dist"
sha256sum refold_"${version#v}"_* >SHA256SUMS
