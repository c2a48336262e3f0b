package engine

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"openbot/domain"
	"openbot/domain/evidence"
)

const (
	// keysFor is how long a process goes on with the signing keys that it has read.
	keysFor = 30 * time.Second
	// KeyDelay is how long a new signing key is published before it signs, so that
	// whoever keeps the published keys for a while has it by then.
	KeyDelay = 10 * time.Minute
	// keysOwner binds the sealed seeds: they belong to the server, not to an organization.
	keysOwner = domain.OrganizationID("server")
)

// keyring keeps the signing keys of the server in memory for a while.
type keyring struct {
	mu      sync.Mutex
	rows    []domain.SigningKey
	read    time.Time
	reading bool
	opened  map[domain.SigningKeyID]*evidence.Key
}

// rowsOf gives the keys as they were read at most keysFor ago, or older ones while they
// are being read and when the database does not answer: no decision waits for them.
func (k *keyring) rowsOf(ctx context.Context, e *Engine, fresh bool) ([]domain.SigningKey, error) {
	now := e.now()
	k.mu.Lock()
	rows := k.rows
	if !fresh && len(rows) > 0 && (k.reading || now.Sub(k.read) < keysFor) {
		k.mu.Unlock()
		return rows, nil
	}
	k.reading = true
	k.mu.Unlock()

	newer, err := e.Store.SigningKeys(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reading = false
	if err != nil {
		if fresh || len(rows) == 0 {
			return nil, err
		}
		return rows, nil
	}
	k.rows, k.read = newer, now
	return newer, nil
}

// open gives the private half of a key.
func (k *keyring) open(e *Engine, row domain.SigningKey) (*evidence.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key, ok := k.opened[row.ID]; ok {
		return key, nil
	}
	seed, err := e.Sealer.Open(row.Sealed, keysOwner, string(row.ID))
	if err != nil {
		return nil, domain.Wrap(domain.CodeInternal, "SigningKey", "The key that signs receipts cannot be opened with this OPENBOT_SECRET_KEY: "+
			"use the one that made it, or make a new key with `openbot keys rotate --now`.", err)
	}
	key, err := evidence.NewKey(row.ID, seed)
	if err != nil || key.Public() != row.Public {
		return nil, domain.Wrap(domain.CodeInternal, "SigningKey", "The key that signs receipts is damaged in the database: make a new one with `openbot keys rotate --now`.", err)
	}
	if k.opened == nil {
		k.opened = map[domain.SigningKeyID]*evidence.Key{}
	}
	k.opened[row.ID] = key
	return key, nil
}

// noSealer is that of a command that needs no secret.
type noSealer struct{}

var errNoSealer = domain.Errorf(domain.CodeInternal, "Sealer", "This is a bug: a secret is needed where none can be opened.")

func (noSealer) Seal([]byte, domain.OrganizationID, string) ([]byte, error) { return nil, errNoSealer }
func (noSealer) Open([]byte, domain.OrganizationID, string) ([]byte, error) { return nil, errNoSealer }

// signer gives the key that signs now.
func (e *Engine) signer(ctx context.Context) (*evidence.Key, error) {
	rows, err := e.keys.rowsOf(ctx, e, false)
	if err != nil {
		return nil, err
	}
	row, ok := domain.SigningKeyNow(rows, e.now())
	if !ok {
		return nil, domain.Errorf(domain.CodeInternal, "SigningKey", "There is no key to sign receipts with: start the server again, which makes one.")
	}
	return e.keys.open(e, row)
}

// PrepareKeys makes the first signing key when there is none, and sees to it that the
// one that signs can be opened. Of servers that start together one makes it.
func (e *Engine) PrepareKeys(ctx context.Context) error {
	err := e.decide(ctx, string(keysOwner), func(d *draft) error {
		rows, err := e.keys.rowsOf(ctx, e, true)
		if err != nil || len(rows) > 0 {
			return err
		}
		return e.newKey(d, 1, d.at)
	})
	if err != nil {
		return err
	}
	if _, err := e.keys.rowsOf(ctx, e, true); err != nil {
		return err
	}
	_, err = e.signer(ctx)
	return err
}

// RotateKeys makes a new signing key. It is published at once and signs after
// KeyDelay, or at once when now is set; the old ones stay published.
func (e *Engine) RotateKeys(ctx context.Context, now bool) (domain.SigningKey, error) {
	var made domain.SigningKey
	err := e.decide(ctx, string(keysOwner), func(d *draft) error {
		rows, err := e.keys.rowsOf(ctx, e, true)
		if err != nil {
			return err
		}
		number, at := int64(1), d.at
		if len(rows) > 0 {
			number = rows[len(rows)-1].Number + 1
			if !now {
				at = at.Add(KeyDelay)
			}
		}
		if err := e.newKey(d, number, at); err != nil {
			return err
		}
		made = *d.commit.Rows[0].(*domain.SigningKey)
		return nil
	})
	return made, err
}

func (e *Engine) newKey(d *draft, number int64, active time.Time) error {
	seed := make([]byte, evidence.SeedSize)
	rand.Read(seed) // never fails: it ends the program when there is no randomness
	row := domain.SigningKey{ID: newID[domain.SigningKeyID](domain.PrefixSigningKey), Number: number, ActiveAt: active, CreatedAt: d.at}
	key, err := evidence.NewKey(row.ID, seed)
	if err != nil {
		return err
	}
	row.Public = key.Public()
	if row.Sealed, err = e.Sealer.Seal(seed, keysOwner, string(row.ID)); err != nil {
		return err
	}
	d.put(&row)
	return nil
}

// SigningKeys gives the public halves of every key that signs, signed or is about to.
func (e *Engine) SigningKeys(ctx context.Context) ([]domain.SigningKey, error) {
	return e.keys.rowsOf(ctx, e, false)
}

// OwnKeys gives the public keys whose private halves this server can open, by which it
// knows its own signatures; those that it cannot open are left out.
func (e *Engine) OwnKeys(ctx context.Context) (evidence.Keys, error) {
	rows, err := e.keys.rowsOf(ctx, e, true)
	if err != nil {
		return nil, err
	}
	keys := evidence.Keys{}
	for _, row := range rows {
		key, err := e.keys.open(e, row)
		if err != nil {
			continue // of another secret, or put there by somebody else
		}
		if err := keys.Add(row.ID, key.Public()); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
