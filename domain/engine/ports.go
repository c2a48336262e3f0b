package engine

import (
	"context"
	"time"

	"openbot/domain"
)

// Ringer rings workers after a commit. It is best effort and bounded: it never
// holds up a caller for more than a moment and never fails one, because the sweep
// rings again what was missed.
type Ringer interface {
	// Ring enqueues tasks. A task that is already there is success.
	Ring(ctx context.Context, tasks ...domain.Task)
}

// Live tells readers of a stream that rows were added. It carries no facts: a
// reader reads the saved rows when told, and every few seconds anyway.
type Live interface {
	// Publish tells every subscriber of these streams, in any process.
	Publish(ctx context.Context, streams ...string)
	// Subscribe gives a channel that gets a value, coalesced, after each Publish of
	// the stream. It is closed by the returned function, which must be called.
	Subscribe(stream string) (<-chan struct{}, func())
}

// Limiter counts events against a limit for a window.
type Limiter interface {
	// Allow counts one event against key and reports whether it fits in limit events
	// a window. When the shared counter cannot be reached it counts in this process.
	Allow(ctx context.Context, key string, limit int, window time.Duration) (ok bool, retryAfter time.Duration)
}

// Models calls models.
type Models interface {
	// Call makes one model call without retries. Its error is a *domain.ModelError.
	Call(ctx context.Context, request domain.ModelRequest) (domain.ModelReply, error)
	// Price gives what a model costs by the shipped table; false when it is not known.
	Price(model string) (domain.ModelPrice, bool)
}

// Apps reaches the outside services. Its errors are *domain.AppError. It never
// sends a call twice by itself.
type Apps interface {
	// Look connects if needed and reads what the App offers.
	Look(ctx context.Context, endpoint domain.AppEndpoint) (domain.AppLook, error)
	// Call sends one tool call once. ready is asked right before the first byte goes
	// out; when it returns an error nothing is sent and that error is returned.
	Call(ctx context.Context, endpoint domain.AppEndpoint, call domain.AppCall, ready func() error) (domain.AppResult, error)
	// ReadResource reads one resource; ready as in Call, though a read may go out twice.
	ReadResource(ctx context.Context, endpoint domain.AppEndpoint, uri string, ready func() error) (domain.AppResult, error)
	// GetPrompt reads one prompt, as ReadResource does.
	GetPrompt(ctx context.Context, endpoint domain.AppEndpoint, name string, arguments map[string]string, ready func() error) (domain.AppResult, error)
}

// Hosts reaches tools of the host. Its errors are *domain.AppError.
type Hosts interface {
	// CallHost sends one call to a tool of the host once, signed; ready as in Apps.Call.
	CallHost(ctx context.Context, tool domain.HostTool, call domain.Call, ready func() error) (domain.AppResult, error)
}

// Hooks tells outside receivers.
type Hooks interface {
	// Deliver posts one message once, signed as Standard Webhooks says, and gives the HTTP
	// status of the answer. Its error is an *AppError: the message did not go out, or no
	// answer came.
	Deliver(ctx context.Context, message domain.HookMessage) (status int, err error)
}

// Mailer sends e-mail.
type Mailer interface {
	// Send hands one message to the mail server once, and gives the SMTP status with which
	// it took or refused it. Its error is an *AppError: no server took or refused it.
	Send(ctx context.Context, mail domain.Mail) (status int, err error)
}

// Programs runs the programs of Bots, each shut off from everything.
type Programs interface {
	// Run runs a program once, from its start. answers are those to its calls, by
	// number, nil where there is none yet; earlier is the Trace of the last run that
	// waited. Whatever the program does is an outcome; an error is internal when what is
	// saved does not fit together, and unavailable when it could not be run now.
	Run(ctx context.Context, source domain.ProgramSource, answers []*domain.ProgramAnswer, earlier domain.ProgramTrace) (domain.ProgramOutcome, error)
}

// Sealer encrypts secrets at rest.
type Sealer interface {
	// Seal encrypts a text for one organization and one owner; both are bound to it.
	Seal(plain []byte, organization domain.OrganizationID, owner string) ([]byte, error)
	// Open gives the text back; it fails for another organization or owner.
	Open(sealed []byte, organization domain.OrganizationID, owner string) ([]byte, error)
}

// Store keeps every fact. Reads give not_found for what is absent and unavailable
// when the database cannot be reached; they do not check who asks.
type Store interface {
	// Ready reports whether the database answers and has the schema of this binary.
	Ready(ctx context.Context) error

	// Commit writes everything in one transaction or nothing. It gives conflict when a
	// row's version has moved, an input was already taken, a reminder is not open any
	// more, a key is already kept, or a unique name is taken; unavailable when the database cannot be reached.
	Commit(ctx context.Context, c domain.Commit) error
	// FirstStart writes c only when there is no token at all, under a lock that holds
	// across processes. It reports whether it wrote.
	FirstStart(ctx context.Context, c domain.Commit) (bool, error)

	Principal(ctx context.Context, tokenHash string) (domain.Principal, error)
	// TouchToken notes the last use of a token.
	TouchToken(ctx context.Context, id domain.TokenID, at time.Time) error
	Organization(ctx context.Context, id domain.OrganizationID) (domain.Organization, error)
	Member(ctx context.Context, id domain.MemberID) (domain.Member, error)
	Members(ctx context.Context, org domain.OrganizationID, page domain.Page) ([]domain.Member, error)
	Token(ctx context.Context, id domain.TokenID) (domain.Token, error)
	Tokens(ctx context.Context, org domain.OrganizationID, page domain.Page) ([]domain.Token, error)

	Bot(ctx context.Context, id domain.BotID) (domain.Bot, error)
	// Bots lists those that a Member works with: its own and the shared ones.
	Bots(ctx context.Context, org domain.OrganizationID, member domain.MemberID, page domain.Page) ([]domain.Bot, error)

	// Helpers gives the session Bots of a Chat that are not archived.
	Helpers(ctx context.Context, chat domain.ChatID) ([]domain.Bot, error)

	Chat(ctx context.Context, id domain.ChatID) (domain.Chat, error)
	// Chats lists a Member's Chats that are neither deleted nor archived.
	Chats(ctx context.Context, member domain.MemberID, page domain.Page) ([]domain.Chat, error)
	// Items gives the history after a sequence, in order.
	Items(ctx context.Context, chat domain.ChatID, after int64, limit int) ([]domain.Item, error)
	// ItemCalls gives the calls that items speak of.
	ItemCalls(ctx context.Context, items []domain.Item) (map[domain.CallID]domain.Call, error)
	Turn(ctx context.Context, id domain.TurnID) (domain.Turn, error)
	Turns(ctx context.Context, chat domain.ChatID, page domain.Page) ([]domain.Turn, error)
	// TurnCalls gives the calls of these Turns, by turn, step and position.
	TurnCalls(ctx context.Context, turns ...domain.TurnID) ([]domain.Call, error)

	Request(ctx context.Context, id domain.RequestID) (domain.Request, error)
	Requests(ctx context.Context, org domain.OrganizationID, filter domain.RequestFilter, page domain.Page) ([]domain.Request, error)
	// RequestHeads lists as Requests does, without what only one Request is shown with:
	// programs and plans are left out, and arguments and reasons are cut.
	RequestHeads(ctx context.Context, org domain.OrganizationID, filter domain.RequestFilter, page domain.Page) ([]domain.Request, error)
	// CountRequests counts them, up to atMost.
	CountRequests(ctx context.Context, org domain.OrganizationID, filter domain.RequestFilter, atMost int) (int, error)
	// AllowedLike gives allowed Requests of the same Bot, Member and capability among the
	// last ones of that Bot before this one, newest first.
	AllowedLike(ctx context.Context, r domain.Request, limit int) ([]domain.Request, error)
	// Names gives the names of these Bots and Connections of an organization, deleted
	// ones included.
	Names(ctx context.Context, org domain.OrganizationID, bots []domain.BotID, connections []domain.ConnectionID) (domain.Names, error)
	// PendingLike gives pending Requests that a Grant may settle: of its Bot, Member and
	// capability, and of its Chat when it has one; by ID after a given one.
	PendingLike(ctx context.Context, grant domain.Grant, after domain.RequestID, limit int) ([]domain.RequestID, error)
	// PendingOfMember gives a Member's pending Requests by ID after a given one.
	PendingOfMember(ctx context.Context, member domain.MemberID, after domain.RequestID, limit int) ([]domain.RequestID, error)
	Grant(ctx context.Context, id domain.GrantID) (domain.Grant, error)
	Grants(ctx context.Context, org domain.OrganizationID, filter domain.GrantFilter, page domain.Page) ([]domain.Grant, error)
	// GrantsBelow gives the Grants in force that rest on a Grant, however far down.
	GrantsBelow(ctx context.Context, id domain.GrantID) ([]domain.Grant, error)
	// GrantsOf gives the Grants in force of a Bot in work for a Member, for one
	// capability.
	GrantsOf(ctx context.Context, bot domain.BotID, member domain.MemberID, c domain.Capability) ([]domain.Grant, error)
	Rule(ctx context.Context, id domain.RuleID) (domain.Rule, error)
	// Rules lists a Member's Rules and those of the organization that are not deleted;
	// those of one Bot when it is named.
	Rules(ctx context.Context, org domain.OrganizationID, member domain.MemberID, bot domain.BotID, page domain.Page) ([]domain.Rule, error)
	// RulesFor gives the Rules in force in work of a Bot for a Member.
	RulesFor(ctx context.Context, org domain.OrganizationID, bot domain.BotID, member domain.MemberID) ([]domain.Rule, error)
	Preview(ctx context.Context, id domain.PreviewID) (domain.Preview, error)
	// ForgetPreviews deletes up to limit previews that were made before a time.
	ForgetPreviews(ctx context.Context, before time.Time, limit int) (int, error)

	Connection(ctx context.Context, id domain.ConnectionID) (domain.Connection, error)
	// Connections lists those that a Member can see and that are not deleted.
	Connections(ctx context.Context, org domain.OrganizationID, member domain.MemberID, page domain.Page) ([]domain.Connection, error)
	HostTool(ctx context.Context, id domain.HostToolID) (domain.HostTool, error)
	HostTools(ctx context.Context, org domain.OrganizationID, page domain.Page) ([]domain.HostTool, error)

	Webhook(ctx context.Context, id domain.WebhookID) (domain.Webhook, error)
	// Webhooks lists a Member's webhooks that are not deleted, and with whole those of the
	// organization, newest first.
	Webhooks(ctx context.Context, org domain.OrganizationID, member domain.MemberID, whole bool, page domain.Page) ([]domain.Webhook, error)
	Delivery(ctx context.Context, id domain.DeliveryID) (domain.Delivery, error)
	// Deliveries lists those of a webhook, newest first; of one status when it is named.
	Deliveries(ctx context.Context, webhook domain.WebhookID, status domain.DeliveryStatus, page domain.Page) ([]domain.Delivery, error)
	Channel(ctx context.Context, id domain.ChannelID) (domain.Channel, error)
	// Channels lists a Member's Channels that are not deleted, and with all those of the
	// organization, newest first.
	Channels(ctx context.Context, org domain.OrganizationID, member domain.MemberID, all bool, page domain.Page) ([]domain.Channel, error)
	// ChannelChat gives the Chat of an outside chat that is not deleted; not_found when there
	// is none.
	ChannelChat(ctx context.Context, channel domain.ChannelID, outside string) (domain.Chat, error)
	// ChannelDeliveries is Deliveries of a Channel.
	ChannelDeliveries(ctx context.Context, channel domain.ChannelID, status domain.DeliveryStatus, page domain.Page) ([]domain.Delivery, error)
	// PendingVia gives pending Requests of work whose input came in by a token of this Member
	// in the name of others, by ID after a given one.
	PendingVia(ctx context.Context, org domain.OrganizationID, member domain.MemberID, after domain.RequestID, limit int) ([]domain.RequestID, error)
	// ForgetDeliveries deletes up to limit deliveries of one status that ended before a
	// time.
	ForgetDeliveries(ctx context.Context, status domain.DeliveryStatus, before time.Time, limit int) (int, error)

	StepFacts(ctx context.Context, id domain.TurnID) (domain.StepFacts, error)
	CallFacts(ctx context.Context, id domain.CallID) (domain.CallFacts, error)
	// CallsFacts gives CallFacts of several calls, in their order; not_found when one of
	// them is not there.
	CallsFacts(ctx context.Context, ids []domain.CallID) ([]domain.CallFacts, error)
	TurnFacts(ctx context.Context, id domain.TurnID) (domain.TurnFacts, error)
	// OpenTurns gives the Chats in which a Bot has a Turn under way.
	OpenTurns(ctx context.Context, bot domain.BotID, limit int) ([]domain.ChatID, error)
	// Inbox gives what waits in a Chat's inbox, in order.
	Inbox(ctx context.Context, chat domain.ChatID) ([]domain.Input, error)
	// Reminder gives one open reminder.
	Reminder(ctx context.Context, id domain.ReminderID) (domain.Reminder, error)
	// OpenReminders counts the open reminders of a Chat.
	OpenReminders(ctx context.Context, chat domain.ChatID) (int, error)

	// Usage sums the ledger by one group, the most expensive first.
	Usage(ctx context.Context, f domain.UsageFilter) ([]domain.UsageSum, error)

	// WorkFacts gives what a decision about the end of a Chat's work needs; Work is empty
	// for a Chat that is no task Chat.
	WorkFacts(ctx context.Context, chat domain.ChatID) (domain.WorkFacts, error)
	Delegation(ctx context.Context, id domain.DelegationID) (domain.Delegation, error)
	Trigger(ctx context.Context, id domain.TriggerID) (domain.Trigger, error)
	// Triggers lists a Member's triggers that are not deleted, newest first.
	Triggers(ctx context.Context, member domain.MemberID, page domain.Page) ([]domain.Trigger, error)
	// Works gives Work of several pieces, in their order.
	Works(ctx context.Context, ids []domain.DelegationID) ([][]domain.Delegation, error)
	// DelegationOf gives the piece of work of an execution.
	DelegationOf(ctx context.Context, id domain.ExecutionID) (domain.Delegation, error)
	// Work gives a piece of work and all work above it, nearest first; of those above
	// without their texts. It is empty when there is no such work.
	Work(ctx context.Context, id domain.DelegationID) ([]domain.Delegation, error)
	// Delegations lists the work that a Chat gave away, newest first.
	Delegations(ctx context.Context, chat domain.ChatID, page domain.Page) ([]domain.Delegation, error)
	// WorkViews gives how pieces of work are shown, in their order.
	WorkViews(ctx context.Context, list []domain.Delegation) ([]domain.DelegationView, error)
	// Untold gives the work that a Chat gave away and of whose end it was not told, oldest
	// first.
	Untold(ctx context.Context, chat domain.ChatID, limit int) ([]domain.Delegation, error)
	// OpenBelow gives open work below a piece of work that has no open work below itself,
	// by ID after a given one.
	OpenBelow(ctx context.Context, id, after domain.DelegationID, limit int) ([]domain.DelegationID, error)
	// Unpark sets free up to limit rows of each kind that a pause parked, due at a time,
	// and gives the tasks to ring; none mean that nothing is left. Their versions move.
	Unpark(ctx context.Context, by domain.DelegationID, due time.Time, limit int) ([]domain.Task, error)

	// RenewLease moves the end of a lease of a call that is out. It reports false when
	// the lease is another's by now. A Turn that has ended changes nothing: a call that
	// is out keeps its lease until its answer is saved.
	RenewLease(ctx context.Context, call domain.CallID, lease string, until time.Time) (bool, error)
	// PushTurn moves the due_at of a Turn whose model step is under way and shows it as
	// running. It reports false when its version has moved: the step is not wanted.
	PushTurn(ctx context.Context, turn domain.TurnID, version int64, due time.Time) (bool, error)

	// PushCall moves the due_at of a call that the judge is being asked about, or of a
	// program that runs. It reports false when its version has moved: what comes of it is
	// not wanted.
	PushCall(ctx context.Context, call domain.CallID, version int64, due time.Time) (bool, error)
	// Beat notes that a server runs. When none did for longer than gap, the Requests
	// that run when nobody answers get the lost time back.
	Beat(ctx context.Context, now time.Time, gap time.Duration) error

	// Due gives open rows of one kind whose due_at has come, oldest first.
	Due(ctx context.Context, kind domain.TaskKind, now time.Time, limit int) ([]domain.DueRow, error)
	// DueRequests gives a share of the pending Requests whose time is up, oldest first.
	// share is from 0 to domain.ExpiryShares - 1.
	DueRequests(ctx context.Context, now time.Time, share, limit int) ([]domain.DueRequest, error)

	// KeptAnswer gives the answer kept under a key; not_found when there is none.
	KeptAnswer(ctx context.Context, member domain.MemberID, key string) (domain.KeptAnswer, error)
	// ForgetAnswers deletes up to limit kept answers whose time is up.
	ForgetAnswers(ctx context.Context, now time.Time, limit int) (int, error)

	// ChatEvents gives a Chat's events after a sequence, in order.
	ChatEvents(ctx context.Context, chat domain.ChatID, after int64, limit int) ([]domain.Event, error)
	// MemberEvents gives a Member's events after a position, in order, never one whose
	// place an unfinished transaction could still come before.
	MemberEvents(ctx context.Context, member domain.MemberID, after int64, limit int) ([]domain.Event, error)
	// LastPosition gives the newest position that MemberEvents would give.
	LastPosition(ctx context.Context, member domain.MemberID) (int64, error)

	// Audit lists an organization's entries below a position, newest first; 0 begins at
	// the newest.
	Audit(ctx context.Context, org domain.OrganizationID, filter domain.AuditFilter, before int64, limit int) ([]domain.AuditEntry, error)
	// AuditAfter gives an organization's entries after a position, in order, never one
	// whose place an unfinished transaction could still come before.
	AuditAfter(ctx context.Context, org domain.OrganizationID, filter domain.AuditFilter, after int64, limit int) ([]domain.AuditEntry, error)
	// AuditLinks gives the links of an organization's chain after a position, in order.
	AuditLinks(ctx context.Context, org domain.OrganizationID, after int64, limit int) ([]domain.AuditLink, error)
	AuditHead(ctx context.Context, org domain.OrganizationID) (domain.AuditHead, error)
	// Unchained lists organizations with entries after the end of their chain, by ID
	// after a given one.
	Unchained(ctx context.Context, after domain.OrganizationID, limit int) ([]domain.OrganizationID, error)
	// Organizations lists every organization by ID after a given one.
	Organizations(ctx context.Context, after domain.OrganizationID, limit int) ([]domain.OrganizationID, error)
	// SigningKeys gives every key that signs or signed, oldest first.
	SigningKeys(ctx context.Context) ([]domain.SigningKey, error)

	// Standing gives figures for metrics.
	Standing(ctx context.Context, now time.Time) (domain.Standing, error)
}
