package example

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the store, so that a Bot that runs wild fills no disk.
const (
	maxNotes  = 200
	maxText   = 64 << 10 // of one note or one mail, in bytes
	maxOutbox = 8 << 20  // of all sent mail together, in bytes
	maxName   = 64
)

// Mail is one mail, in the inbox or sent.
type Mail struct {
	ID      string    `json:"id"`
	From    string    `json:"from"`
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Date    time.Time `json:"date"`
	Body    string    `json:"body,omitempty"`
}

// store keeps mail and notes in files. os.Root makes sure that no name leads out of
// the directory, whatever else goes wrong.
type store struct {
	mu   sync.Mutex
	root *os.Root
}

// Files of the store.
const (
	inboxFile  = "inbox.json"
	outboxFile = "outbox.jsonl"
	notesDir   = "notes"
)

func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory of the example App cannot be made: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("the directory of the example App cannot be opened: %w", err)
	}
	s := &store{root: root}
	if _, err := root.Stat(inboxFile); errors.Is(err, fs.ErrNotExist) {
		if err := s.seed(); err != nil {
			return nil, fmt.Errorf("the example App cannot be filled: %w", err)
		}
	}
	return s, nil
}

// seed writes the first mail and notes. The inbox comes last: it marks the work as
// done.
func (s *store) seed() error {
	if err := s.root.MkdirAll(notesDir, 0o700); err != nil {
		return err
	}
	for name, text := range seedNotes {
		if err := s.replace(notePath(name), []byte(text)); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(seedMails(time.Now().UTC().Truncate(time.Second)), "", "  ")
	if err != nil {
		return err
	}
	return s.replace(inboxFile, data)
}

// replace writes a file so that a reader sees the old or the new one, never half.
func (s *store) replace(name string, data []byte) error {
	temporary := filepath.Join(filepath.Dir(name), ".tmp-"+rand.Text())
	if err := s.root.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	if err := s.root.Rename(temporary, name); err != nil {
		_ = s.root.Remove(temporary)
		return err
	}
	return nil
}

func (s *store) inbox() ([]Mail, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := s.root.ReadFile(inboxFile)
	if err != nil {
		return nil, errors.New("the inbox cannot be read")
	}
	var mails []Mail
	if err := json.Unmarshal(data, &mails); err != nil {
		return nil, errors.New("the inbox is damaged")
	}
	return mails, nil
}

func (s *store) mail(id string) (Mail, error) {
	mails, err := s.inbox()
	if err != nil {
		return Mail{}, err
	}
	i := slices.IndexFunc(mails, func(m Mail) bool { return m.ID == id })
	if i < 0 {
		return Mail{}, fmt.Errorf("there is no mail with the id %.64q; list_mail shows them", id)
	}
	return mails[i], nil
}

// send appends a mail to the outbox and gives its id.
func (s *store) send(in mailInput) (string, error) {
	address, err := mail.ParseAddress(in.To)
	switch {
	case err != nil || len(in.To) > 254:
		return "", errors.New("to is not a mail address")
	case in.Subject == "" || len(in.Subject) > 200 || strings.ContainsAny(in.Subject, "\r\n"):
		return "", errors.New("the subject must be one line of 1 to 200 characters")
	case len(in.Body) > maxText:
		return "", fmt.Errorf("the body is longer than %d KiB", maxText>>10)
	}
	sent := Mail{ID: "sent-" + rand.Text(), From: "bot@example.test", To: address.Address,
		Subject: in.Subject, Date: time.Now().UTC(), Body: in.Body}
	line, err := json.Marshal(sent)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if info, err := s.root.Stat(outboxFile); err == nil && info.Size()+int64(len(line)) > maxOutbox {
		return "", errors.New("the outbox is full; empty " + outboxFile + " to send more")
	}
	file, err := s.root.OpenFile(outboxFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", errors.New("the outbox cannot be opened")
	}
	_, err = file.Write(append(line, '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.New("the outbox cannot be written")
	}
	return sent.ID, nil
}

// ReadOutbox gives what was sent in a directory of the App, oldest first.
func ReadOutbox(dir string) ([]Mail, error) {
	data, err := os.ReadFile(filepath.Join(dir, outboxFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var mails []Mail
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxOutbox)
	for lines.Scan() {
		var m Mail
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("the outbox is damaged: %w", err)
		}
		mails = append(mails, m)
	}
	return mails, lines.Err()
}

// notePath is the file of a note. checkName must have passed.
func notePath(name string) string { return filepath.Join(notesDir, name+".md") }

// checkName keeps names to what is a plain file name everywhere.
func checkName(name string) error {
	ok := name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
	if !ok {
		return fmt.Errorf("%.80q is no name for a note: use 1 to %d of letters, digits, '-' and '_'", name, maxName)
	}
	return nil
}

func (s *store) notes() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noteNames()
}

func (s *store) noteNames() ([]string, error) {
	entries, err := fs.ReadDir(s.root.FS(), notesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{}, nil
	}
	if err != nil {
		return nil, errors.New("the notes cannot be listed")
	}
	names := []string{}
	for _, entry := range entries {
		name, isNote := strings.CutSuffix(entry.Name(), ".md")
		if isNote && entry.Type().IsRegular() && checkName(name) == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

func (s *store) note(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := s.root.ReadFile(notePath(name))
	if err != nil {
		return "", fmt.Errorf("there is no note %q; list_notes shows them", name)
	}
	return string(data), nil
}

func (s *store) writeNote(name, text string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if len(text) > maxText {
		return fmt.Errorf("the note is longer than %d KiB", maxText>>10)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.noteNames()
	if err != nil {
		return err
	}
	if len(names) >= maxNotes && !slices.Contains(names, name) {
		return fmt.Errorf("there are %d notes already; delete one first", maxNotes)
	}
	if err := s.root.MkdirAll(notesDir, 0o700); err != nil {
		return errors.New("the folder of notes cannot be made")
	}
	if err := s.replace(notePath(name), []byte(text)); err != nil {
		return errors.New("the note cannot be written")
	}
	return nil
}

func (s *store) deleteNote(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.root.Remove(notePath(name)); err != nil {
		return fmt.Errorf("there is no note %q; list_notes shows them", name)
	}
	return nil
}
