package journal

// Groups has j store in groups, or one by one, whatever it sees.
func (j *Journal) Groups(groups bool) {
	for _, c := range []*committer{j.logs, j.effects, j.timers, j.notices} {
		c.pace = pace{groups: groups, judged: true}
	}
}
