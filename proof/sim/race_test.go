//go:build race

package sim

// defaultSeeds is how many of wholeSeeds seeds are played unless the environment says
// otherwise: fewer under the race detector, which makes each several times as dear.
// make simulated plays all of them without it, as part of make check.
const defaultSeeds = wholeSeeds / 5
