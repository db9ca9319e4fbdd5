//go:build !race

package bridge

// simSeeds is how many of simWhole seeds are played unless the environment says
// otherwise.
const simSeeds = simWhole
