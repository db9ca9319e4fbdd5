package journal

// Groups makes j store in groups, or one by one, whatever it measures.
func (j *Journal) Groups(groups bool) {
	for _, c := range []*committer{j.logs, j.effects, j.timers, j.notices} {
		c.pace = pace{groups: groups, judged: true}
	}
}
