package codec

// Pair is one entry of a map.
type Pair struct {
	Key   string
	Value Raw
}

// Pairs is a map as the list of its entries, in the byte order of the keys. Pure
// packages use it for an object with free keys. Marshal refuses Pairs that are not in
// order; Unmarshal returns a list that is not nil.
type Pairs []Pair
