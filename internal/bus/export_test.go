package bus

// Groups has b store in groups, or one by one, whatever it sees.
func (b *Bus) Groups(groups bool) *Bus {
	for _, c := range []*committer{b.logs, b.effects, b.timers, b.notices} {
		c.pace = pace{groups: groups, judged: true}
	}
	return b
}
