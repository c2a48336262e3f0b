package queue

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/hibiken/asynq"

	"openbot/domain"
)

// weights shares out the workers between the queues when all have work. They are
// shares and not a strict order, so that clean-up still gets its turn.
var weights = map[domain.Urgency]int{
	domain.UrgencyAnswer:   6,
	domain.UrgencyTurn:     3,
	domain.UrgencyReview:   2,
	domain.UrgencyJudge:    2,
	domain.UrgencyProgram:  2,
	domain.UrgencyDelivery: 1,
	domain.UrgencyRest:     1,
}

// urgencies lists every queue, the most urgent first.
var urgencies = []domain.Urgency{domain.UrgencyAnswer, domain.UrgencyTurn, domain.UrgencyReview, domain.UrgencyJudge, domain.UrgencyProgram, domain.UrgencyDelivery, domain.UrgencyRest}

const (
	// tries is how often asynq itself runs a failed task again. It is small since
	// the sweep is what really brings work back.
	tries = 2
	// backstop ends a handler that bounds nothing itself. asynq counts in whole
	// seconds and reads anything below one as half an hour.
	backstop = time.Hour
	// tryEvery is how often a row whose task is held by a worker that may be dead
	// can get one more task.
	tryEvery = 10
)

// note is what a task carries through Redis: enough to find the row, no more.
type note struct {
	Kind     domain.TaskKind `json:"k"`
	Subject  string          `json:"id"`
	Revision int64           `json:"r"`
	Trace    string          `json:"t,omitempty"`
}

// queueOf gives the queue of an urgency; one that is not known can wait.
func queueOf(u domain.Urgency) domain.Urgency {
	if _, known := weights[u]; known {
		return u
	}
	return domain.UrgencyRest
}

// identity makes the same ring twice one task.
func identity(t domain.Task) string {
	return string(t.Kind) + ":" + t.Subject + ":" + strconv.FormatInt(t.Revision, 10)
}

// identityOfTry names one more task for a row whose own task is in the way. All
// rings of the same few seconds share it, so repeated sweeps do not pile up tasks.
func identityOfTry(t domain.Task, now time.Time) string {
	return identity(t) + ":t" + strconv.FormatInt(now.Unix()/tryEvery, 10)
}

// encode makes the asynq task of t under an identity.
func encode(t domain.Task, id string) (*asynq.Task, error) {
	payload, err := json.Marshal(note{Kind: t.Kind, Subject: t.Subject, Revision: t.Revision, Trace: t.Trace})
	if err != nil {
		return nil, err
	}
	options := []asynq.Option{asynq.TaskID(id), asynq.Queue(string(queueOf(t.Urgency))),
		asynq.MaxRetry(tries), asynq.Timeout(backstop)}
	if !t.At.IsZero() {
		options = append(options, asynq.ProcessAt(startOf(t)))
	}
	return asynq.NewTask(string(t.Kind), payload, options...), nil
}

// startOf gives when a task starts, in whole seconds, the only ones that asynq knows. None
// starts early but that of a time limit: its worker waits for the rest of the second, so
// that a limit is in force at its time.
func startOf(t domain.Task) time.Time {
	if t.Kind == domain.TaskWorkElapse {
		return t.At.Truncate(time.Second)
	}
	return roundUp(t.At)
}

// roundUp gives the next whole second: asynq cuts to seconds and would start early.
func roundUp(at time.Time) time.Time {
	whole := at.Truncate(time.Second)
	if whole.Before(at) {
		whole = whole.Add(time.Second)
	}
	return whole
}

// decode reads what a task carries. What is in Redis may have been put there by
// anybody who reaches it.
func decode(payload []byte, queue string) (domain.Task, error) {
	var n note
	if err := json.Unmarshal(payload, &n); err != nil {
		return domain.Task{}, err
	}
	if n.Kind == "" || n.Subject == "" {
		return domain.Task{}, errors.New("the task names no kind or no row")
	}
	return domain.Task{Kind: n.Kind, Subject: n.Subject, Revision: n.Revision,
		Urgency: queueOf(domain.Urgency(queue)), Trace: n.Trace}, nil
}
