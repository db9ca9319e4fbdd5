package jetmodel

// PublishBatch stores all messages and returns the last one's Ack. Or it stores
// none and returns the *Error of the first refused message. A fenced message is
// refused if the batch already has a message of its subject.
func (s *Stream) PublishBatch(all []Put) (Ack, error) {
	s.expire()
	ids, subjects := map[string]bool{}, map[string]bool{}
	for _, p := range all {
		if _, seen := s.seen(p.ID); seen || p.ID != "" && ids[p.ID] {
			return Ack{}, errBatchRepeats
		}
		ids[p.ID] = true
		subject := s.subject(p.Subject)
		if p.Fenced && subjects[subject] {
			return Ack{}, errWrongLastHere
		}
		if err := s.wrongLast(p, subject); err != nil {
			return Ack{}, err
		}
		if err := s.full(subject); err != nil || s.cfg.OnePerSubject && subjects[subject] {
			return Ack{}, errSubjectFull
		}
		subjects[subject] = true
	}
	var ack Ack
	for _, p := range all {
		ack = s.store(p, s.subject(p.Subject))
	}
	return ack, nil
}
