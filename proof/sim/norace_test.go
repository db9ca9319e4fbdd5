//go:build !race

package sim

// defaultSeeds is how many of wholeSeeds seeds are played unless the environment says
// otherwise.
const defaultSeeds = wholeSeeds
