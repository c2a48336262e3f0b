package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gowebpki/jcs"

	"openbot/domain"
)

// entry is what is hashed: the form in which an entry stands on the wire, without its
// hash.
type entry struct {
	Organization domain.OrganizationID `json:"organization"`
	Number       int64                 `json:"number"`
	At           int64                 `json:"at"`
	Kind         string                `json:"kind"`
	Subject      string                `json:"subject"`
	Actor        domain.Actor          `json:"actor"`
	Token        *string               `json:"token"`
	Address      *string               `json:"address"`
	Data         json.RawMessage       `json:"data"`
	Previous     *string               `json:"previous"`
}

// Hash gives the SHA-256 in hex of the RFC 8785 form of an entry with its number and
// the hash of the entry before ("" for the first).
func Hash(e domain.AuditEntry, number int64, previous string) (string, error) {
	raw, err := json.Marshal(entry{Organization: e.Organization, Number: number, At: e.At.UnixMilli(), Kind: e.Kind, Subject: e.Subject,
		Actor: e.Actor, Token: orNull(string(e.Token)), Address: orNull(e.Address), Data: e.Data, Previous: orNull(previous)})
	if err != nil {
		return "", fmt.Errorf("writing an entry of the audit log: %w", err)
	}
	return hashObject(raw)
}

func hashObject(raw []byte) (string, error) {
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return "", fmt.Errorf("an entry of the audit log has no canonical form: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// exact reports whether a saved entry holds nothing that its hash does not cover: time
// below a millisecond, or data in another spelling.
func exact(e domain.AuditEntry) bool {
	canonical, err := jcs.Transform(e.Data)
	return err == nil && bytes.Equal(canonical, e.Data) && e.At.Equal(e.At.Truncate(time.Millisecond))
}

// Chain links entries, in the order of their positions, to the end of a chain. It
// gives the new end and a link for each entry.
func Chain(head domain.AuditHead, entries []domain.AuditEntry) (domain.AuditHead, []domain.AuditLink, error) {
	links := make([]domain.AuditLink, 0, len(entries))
	for _, e := range entries {
		hash, err := Hash(e, head.Count+1, head.Hash)
		if err != nil {
			return head, nil, err
		}
		links = append(links, domain.AuditLink{Organization: e.Organization, Position: e.Position, Number: head.Count + 1, Previous: head.Hash, Hash: hash})
		head.Count, head.Hash, head.Position = head.Count+1, hash, e.Position
	}
	return head, links, nil
}
