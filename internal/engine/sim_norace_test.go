//go:build !race

package engine

// simSeeds is how many of simWhole seeds are played.
const simSeeds = simWhole
