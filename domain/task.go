package domain

import "time"

// TaskKind names what a worker must look at. A task carries a kind, an ID and a
// revision and nothing else: it is a bell, never a fact.
type TaskKind string

const (
	// TaskTurnStep takes the next model step of a Turn.
	TaskTurnStep TaskKind = "turn.step"
	// TaskCallSend sends one allowed call.
	TaskCallSend TaskKind = "call.send"
	// TaskCallLapse looks at a call whose lease ran out.
	TaskCallLapse TaskKind = "call.lapse"
	// TaskRequestElapse looks at a Request whose time may be up.
	TaskRequestElapse TaskKind = "request.elapse"
	// TaskRequestsElapse ends many Requests whose time is up. No row has this task: the
	// sweep rings it when so many are due that one task for each would take too long. Its
	// Subject names a share of them; see ExpiryShares.
	TaskRequestsElapse TaskKind = "requests.elapse"
	// TaskGrantSettle answers equal pending Requests by a new Grant.
	TaskGrantSettle TaskKind = "grant.settle"
	// TaskConnectionLook looks at an App: its tools, resources and health.
	TaskConnectionLook TaskKind = "connection.look"
	// TaskCallJudge lets the judge read the Rules about one call.
	TaskCallJudge TaskKind = "call.judge"
	// TaskProgramRun runs a program.
	TaskProgramRun TaskKind = "program.run"
	// TaskRequestReview opens the review of a Request, or sends on what it did not
	// decide.
	TaskRequestReview TaskKind = "request.review"
	// TaskRequestVerdict lets the automatic reviewer read a new Request.
	TaskRequestVerdict TaskKind = "request.verdict"
	// TaskRequestFollowUp tells of an open Request again: it reminds the person, or lets a
	// second Member answer too.
	TaskRequestFollowUp TaskKind = "request.followup"
	// TaskBotClose stops the Turns of an archived Bot.
	TaskBotClose TaskKind = "bot.close"
	// TaskRulePreview lets the judge read one Rule about earlier Requests.
	TaskRulePreview TaskKind = "rule.preview"
	// TaskWorkElapse looks at work whose time limit may be reached.
	TaskWorkElapse TaskKind = "work.elapse"
	// TaskWorkNotify tells a giving Chat of work that has ended.
	TaskWorkNotify TaskKind = "work.notify"
	// TaskWorkClose stops all work below work that was stopped, and ends it.
	TaskWorkClose TaskKind = "work.close"
	// TaskWorkResume sets free what was parked by a pause.
	TaskWorkResume TaskKind = "work.resume"
	// TaskTokenClose closes the Requests of a revoked token or a disabled Member.
	TaskTokenClose TaskKind = "token.close"
	// TaskTriggerFire gives the work of a trigger whose time has come.
	TaskTriggerFire TaskKind = "trigger.fire"
	// TaskReminderFire gives a reminder to its Chat.
	TaskReminderFire TaskKind = "reminder.fire"
	// TaskWebhookDeliver makes one try of a delivery.
	TaskWebhookDeliver TaskKind = "webhook.deliver"
)

// ExpiryShares is into how many shares the Requests whose time is up are divided when
// there are many. Workers that end them at the same time then meet on no row.
const ExpiryShares = 2

// TaskKinds lists the kind of every task that belongs to a row.
func TaskKinds() []TaskKind {
	return []TaskKind{TaskTurnStep, TaskCallSend, TaskCallLapse, TaskRequestElapse,
		TaskGrantSettle, TaskConnectionLook, TaskTokenClose, TaskBotClose, TaskCallJudge,
		TaskRequestReview, TaskRulePreview, TaskProgramRun, TaskReminderFire, TaskTriggerFire, TaskRequestVerdict,
		TaskWorkElapse, TaskWorkNotify, TaskWorkClose, TaskWorkResume, TaskWebhookDeliver, TaskRequestFollowUp}
}

// Urgency orders tasks. Answers and resumed Turns come before new Turns, those
// before judging, and clean-up comes last.
type Urgency string

const (
	// UrgencyAnswer is work that a person's or Bot's answer set free.
	UrgencyAnswer Urgency = "answers"
	// UrgencyTurn is a new Turn.
	UrgencyTurn Urgency = "turns"
	// UrgencyReview is judging, reviewing and looking at Apps.
	UrgencyReview Urgency = "reviews"
	// UrgencyJudge is reading Rules. It has workers of its own, so that a slow judge
	// holds up nothing else.
	UrgencyJudge Urgency = "judging"
	// UrgencyProgram is running programs. It has workers of its own, so that programs
	// that use up their time hold up nothing else.
	UrgencyProgram Urgency = "programs"
	// UrgencyDelivery is telling outside receivers. It has workers of its own, so that
	// receivers that do not answer hold up nothing else.
	UrgencyDelivery Urgency = "deliveries"
	// UrgencyRest is clean-up.
	UrgencyRest Urgency = "rest"
)

// Task asks a worker to look at one row. The same Kind, Subject and Revision is
// one task however often it is rung; a handler drops it when the row has moved on.
type Task struct {
	Kind     TaskKind
	Subject  string    // the ID of the row
	Revision int64     // the row's version, or for a timer its due time in ms
	Urgency  Urgency   //
	At       time.Time // not before; zero means now
	Overdue  bool      // the sweep rings again: whoever holds the task may be dead
	Trace    string    // W3C traceparent of what caused it, or ""
}
