//go:build race

package worker

// simSeeds is how many of simWhole seeds are played unless the environment says
// otherwise: fewer under the race detector, which makes each several times as dear.
// make simulated plays all of them without it, as part of make check.
const simSeeds = simWhole / 5
