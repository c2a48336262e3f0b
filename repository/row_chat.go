package repository

import "openbot/domain"

type chatRow struct {
	ID             domain.ChatID         `gorm:"<-:create"`
	OrganizationID domain.OrganizationID `gorm:"<-:create"`
	MemberID       domain.MemberID       `gorm:"<-:create"`
	BotID          domain.BotID          `gorm:"<-:create"`
	Kind           domain.ChatKind       `gorm:"<-:create"`
	Mode           string
	Plan           document[*domain.PlanTerms]
	Title          string
	Status         domain.ChatStatus
	Parent         document[*domain.ChatParent] `gorm:"<-:create"`
	DelegationID   domain.DelegationID
	RequestID      domain.RequestID `gorm:"<-:create"`
	ChannelID      domain.ChannelID `gorm:"<-:create"`
	Outside        string           `gorm:"<-:create"`
	Tainted        bool             // that there is taint, for whoever reads the table
	Taint          document[domain.Taint]
	TurnID         domain.TurnID
	LastTurnID     domain.TurnID
	LastItem       int64
	LastEvent      int64
	LastInput      int64
	ArchivedAt     *int64
	Deleted        *int64 `gorm:"column:deleted_at"`
	Created        int64  `gorm:"column:created_at;<-:create"`
	Updated        int64  `gorm:"column:updated_at"`
	Version        int64
}

func (chatRow) TableName() string { return "chats" }

func fromChat(c *domain.Chat, version int64) chatRow {
	var plan *domain.PlanTerms
	if c.Plan != (domain.PlanTerms{}) {
		plan = &c.Plan
	}
	return chatRow{Plan: documentOf(plan), RequestID: c.Request, ChannelID: c.Channel, Outside: c.Outside, ArchivedAt: microsOrNil(c.ArchivedAt), ID: c.ID, OrganizationID: c.Organization, MemberID: c.Member, BotID: c.Bot, Kind: c.Kind,
		Mode: c.Mode, Title: c.Title, Status: c.Status, Parent: documentOf(c.Parent), Tainted: c.Tainted(), Taint: documentOf(c.Taint),
		DelegationID: c.Delegation(), TurnID: c.Turn, LastTurnID: c.LastTurn, LastItem: c.LastItem, LastEvent: c.LastEvent, LastInput: c.LastInput,
		Deleted: microsOrNil(c.DeletedAt), Created: micros(c.CreatedAt), Updated: micros(c.UpdatedAt), Version: version}
}

func (r chatRow) domain() domain.Chat {
	var plan domain.PlanTerms
	if r.Plan.value != nil {
		plan = *r.Plan.value
	}
	parent := r.Parent.value
	if parent != nil {
		parent = &domain.ChatParent{Chat: parent.Chat, Delegation: r.DelegationID}
	}
	return domain.Chat{Plan: plan, Request: r.RequestID, Channel: r.ChannelID, Outside: r.Outside, ArchivedAt: momentOrNil(r.ArchivedAt), ID: r.ID, Organization: r.OrganizationID, Member: r.MemberID, Bot: r.BotID, Kind: r.Kind,
		Mode: r.Mode, Title: r.Title, Status: r.Status, Parent: parent, Taint: r.Taint.value,
		Turn: r.TurnID, LastTurn: r.LastTurnID, LastItem: r.LastItem, LastEvent: r.LastEvent, LastInput: r.LastInput,
		DeletedAt: momentOrNil(r.Deleted), CreatedAt: moment(r.Created), UpdatedAt: moment(r.Updated), Version: r.Version}
}

// itemRow is only ever inserted: the history does not change.
type itemRow struct {
	ChatID   domain.ChatID
	Sequence int64
	TurnID   domain.TurnID
	Step     int
	Kind     domain.ItemKind
	Author   string
	Text     string
	Topic    domain.Topic
	CallID   domain.CallID
	Created  int64 `gorm:"column:created_at"`
}

func (itemRow) TableName() string { return "items" }

func fromItem(i *domain.Item) itemRow {
	return itemRow{ChatID: i.Chat, Sequence: i.Sequence, TurnID: i.Turn, Step: i.Step, Kind: i.Kind,
		Author: i.From, Text: i.Text, Topic: i.Topic, CallID: i.Call, Created: micros(i.CreatedAt)}
}

func (r itemRow) domain() domain.Item {
	return domain.Item{Chat: r.ChatID, Sequence: r.Sequence, Turn: r.TurnID, Step: r.Step, Kind: r.Kind,
		From: r.Author, Text: r.Text, Topic: r.Topic, Call: r.CallID, CreatedAt: moment(r.Created)}
}

// inputRow is inserted when input comes and deleted when a Turn takes it.
type inputRow struct {
	ID        domain.InputID
	ChatID    domain.ChatID
	Sequence  int64
	Kind      domain.ItemKind
	Author    string
	Text      string
	Topic     domain.Topic
	Authority document[[]domain.Authority]
	Taint     document[domain.Taint]
	Created   int64 `gorm:"column:created_at"`
}

func (inputRow) TableName() string { return "inputs" }

func fromInput(i *domain.Input) inputRow {
	return inputRow{ID: i.ID, ChatID: i.Chat, Sequence: i.Sequence, Kind: i.Kind, Author: i.From, Text: i.Text, Topic: i.Topic,
		Authority: documentOf(i.Authority), Taint: documentOf(i.Taint), Created: micros(i.CreatedAt)}
}

func (r inputRow) domain() domain.Input {
	return domain.Input{ID: r.ID, Chat: r.ChatID, Sequence: r.Sequence, Kind: r.Kind, From: r.Author, Text: r.Text, Topic: r.Topic,
		Authority: r.Authority.value, Taint: r.Taint.value, CreatedAt: moment(r.Created)}
}
