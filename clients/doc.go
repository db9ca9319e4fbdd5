// Package clients has the clients of the HTTP API for other languages: python and
// typescript. Its tests serve sessions with package web, and let both clients play the
// same scenarios, which must print the same (make check-web).
package clients
