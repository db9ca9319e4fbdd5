//go:build !race

package worker

// simSeeds is how many of simWhole seeds are played unless the environment says
// otherwise.
const simSeeds = simWhole
