package domain

import "time"

// RequestReminded is a Request of which the person is told once more, since its time is
// nearly up.
type RequestReminded struct{ At time.Time }

// RequestEscalated is a Request that the person has not answered in the time that the
// organization gives. Able reports whether the second Member can answer it.
type RequestEscalated struct {
	At   time.Time
	Able bool
}

func (RequestReminded) requestEvent() string  { return RequestEventReminded }
func (RequestEscalated) requestEvent() string { return RequestEventEscalated }

// FollowedUp gives a new Request with the times at which somebody hears of it again, as
// the settings want it now; a later change of them is for later Requests. The second
// Member's time begins when the Request comes to the person.
func (r Request) FollowedUp(s Settings) Request {
	if before := s.RemindBefore(); before > 0 {
		if at := r.ExpiresAt.Add(-before); Before(r.CreatedAt, at) {
			r.RemindAt = &at
		}
	}
	if s.Escalation != nil && s.Escalation.Member != r.Member {
		r.Escalation = ptr(*s.Escalation)
	}
	if r.Approver.Tag == TagPerson {
		r.EscalateAt = r.escalatesAfter(r.CreatedAt)
	}
	return r
}

// escalatesAfter gives when a Request that came to the person at a time goes to the second
// Member too; nil when it never does.
func (r Request) escalatesAfter(at time.Time) *time.Time {
	if r.Escalation == nil {
		return nil
	}
	due := at.Add(time.Duration(r.Escalation.AfterMs) * time.Millisecond)
	if !Before(due, r.ExpiresAt) {
		return nil
	}
	return &due
}

// FollowUps gives the times of an open Request at which somebody must look, to tell of
// it again.
func (r Request) FollowUps() []time.Time {
	var due []time.Time
	for _, at := range []*time.Time{r.RemindAt, r.EscalateAt} {
		if at != nil && r.Status == RequestPending {
			due = append(due, *at)
		}
	}
	return due
}

// remind takes the reminder off. The revision stays, and so does all that decides: what is
// told must not make a person's answer old.
func (r Request) remind(ev RequestReminded) (Request, error) {
	if err := r.followUpDue(r.RemindAt, ev.At); err != nil {
		return r, err
	}
	r.RemindAt, r.UpdatedAt = nil, ev.At
	return r, nil
}

// escalate lets the second Member answer beside the person. The revision stays: the
// person may be answering just now.
func (r Request) escalate(ev RequestEscalated) (Request, error) {
	if err := r.followUpDue(r.EscalateAt, ev.At); err != nil {
		return r, err
	}
	r.EscalateAt, r.UpdatedAt = nil, ev.At
	if ev.Able && r.Escalation != nil && r.Approver.Tag == TagPerson {
		r.Second = r.Escalation.Member
	}
	return r, nil
}

func (r Request) followUpDue(due *time.Time, at time.Time) error {
	switch {
	case due == nil:
		return requestConflict("Nobody is to be told of this Request again.")
	case Before(at, *due):
		return Errorf(CodePrecondition, "RequestConflict", "It is too early to tell of this Request again.")
	case !Before(at, r.ExpiresAt):
		return requestConflict("The time of this Request is up.")
	}
	return nil
}

// AnswerableBy reports whether a Member may answer the Request as it stands: the person
// that it waits for, and once it was escalated the second Member too.
func (r Request) AnswerableBy(m MemberID) bool {
	return m != "" && r.Approver.Tag == TagPerson && (r.Approver.User == m || r.Second == m)
}

// unfollowed takes off what would tell of a Request again.
func (r Request) unfollowed() Request {
	r.RemindAt, r.EscalateAt = nil, nil
	return r
}
