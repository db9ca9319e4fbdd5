//go:build !race

package host

// simSeeds is how many of simWhole seeds are played.
const simSeeds = simWhole
