#!/usr/bin/env bash
# Appends the registry's digest to the version of each registry image in the
# given files: nats:2.15.3-alpine becomes nats:2.15.3-alpine@sha256:…. An existing
# digest is looked up again. Either all digests are found, or no file changes.
#
# PIN_REGISTRY names another registry than Docker Hub, such as a mirror of it.
set -euo pipefail
registry=${PIN_REGISTRY:-https://registry-1.docker.io}

fail() { echo "make pin-images: $*" >&2; exit 1; }

# The response to a request for an image's manifest: its headers.
ask() { # repository version [header]
	curl --silent --show-error --head --max-time 30 "${@:3}" \
		--header 'Accept: application/vnd.oci.image.index.v1+json' \
		--header 'Accept: application/vnd.docker.distribution.manifest.list.v2+json' \
		"$registry/v2/$1/manifests/$2" | tr -d '\r'
}

# The part of a WWW-Authenticate header that is named.
part() { sed -n "s/^www-authenticate: *bearer .*$1=\"\([^\"]*\)\".*/\1/Ip" <<<"$2"; }

digest() { # repository version
	local said realm token
	said=$(ask "$1" "$2") || fail "$registry can't be reached. Try again later, or name a mirror that can: PIN_REGISTRY=https://HOST make pin-images"
	if grep -qiE '^HTTP/[0-9.]+ 401' <<<"$said"; then # the registry says where to get a token; anybody gets one
		realm=$(part realm "$said")
		[[ $realm == https://* || $realm == http://127.0.0.1:* ]] || fail "$registry asks for a login: $realm"
		token=$(curl --silent --show-error --fail --max-time 30 --get --data-urlencode "service=$(part service "$said")" \
			--data-urlencode "scope=repository:$1:pull" "$realm" | sed -n 's/.*"token" *: *"\([^"]*\)".*/\1/p') || fail "$realm gives no token"
		said=$(ask "$1" "$2" --header "Authorization: Bearer $token") || fail "$registry can't be reached any more"
	fi
	said=$(sed -n 's/^docker-content-digest: *\(sha256:[0-9a-f]\{64\}\) *$/\1/Ip' <<<"$said")
	[[ $said == sha256:* ]] || fail "$registry has no digest for $1:$2"
	echo "$said"
}

# What files name: FROM and image:, with a version. Stages and images that are
# built here have none.
images=$(sed -nE 's/^(FROM| *image:) +([a-z0-9./_-]+:[A-Za-z0-9._-]+)(@sha256:[0-9a-f]+)?( .*)?$/\2/p' "$@" | sort -u)
[[ -n $images ]] || fail "$* names no image with a version"
edits=()
for image in $images; do
	repository=${image%:*}
	[[ $repository == */* ]] || repository=library/$repository
	found=$(digest "$repository" "${image##*:}") || exit 1
	echo "$image@$found"
	edits+=(-e "s#^((FROM| *image:) +)${image//./\\.}(@sha256:[0-9a-f]+)?( .*)?\$#\1$image@$found\4#")
done
for file in "$@"; do
	new=$(sed -E "${edits[@]}" "$file"; echo .)
	[[ ${new%.} == "$(cat "$file"; echo)" ]] || printf %s "${new%.}" >"$file"
done
