package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openbot/apps"
	"openbot/config"
	"openbot/domain"
	"openbot/domain/engine"
	"openbot/domain/evidence"
)

func verifyCommand(file *string) *cobra.Command {
	var keys string
	cmd := &cobra.Command{Use: "verify FILE", Short: "Check a receipt, or the signed head of an audit log (- reads it from the input).", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			known, err := knownKeys(cmd.Context(), *file, keys)
			if err != nil {
				return err
			}
			text, err := readInput(cmd, args[0])
			if err != nil {
				return err
			}
			signed, err := evidence.Open(strings.TrimRight(text, "\r\n"), known)
			if err != nil {
				return fmt.Errorf("not valid: %w", err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "valid: "+found(signed))
			return nil
		}}
	cmd.Flags().StringVar(&keys, "keys", "", "public keys: a file, or the address of a server's /.well-known/jwks.json; those of the own database when left out")
	return cmd
}

// found says in one line what was signed.
func found(s evidence.Signed) string {
	if h := s.Head; h != nil {
		return fmt.Sprintf("the audit log of %s had %d entries on %s, the last with the hash %s (signed with %s)", h.Organization, h.Count, moment(h.AtMs), h.Hash, s.Key)
	}
	r := s.Receipt
	by := r.By.Tag
	for _, id := range []string{string(r.By.User), string(r.By.Bot), string(r.By.Grant), string(r.By.Rule)} {
		if id != "" {
			by += " " + id
		}
	}
	connection := ""
	if r.Connection != "" {
		connection = fmt.Sprintf(", connection revision %d", r.ConnectionRevision)
	}
	return fmt.Sprintf("%s %s by %s on %s: %s %q of %s for %s in %s, revision %d, arguments sha256 %s%s (signed with %s)", r.Decision, r.Scope, by, moment(r.AtMs),
		r.Capability.Action, r.Capability.Target, r.Bot, r.Request, r.Organization, r.Revision, r.ArgumentsSHA256, connection, s.Key)
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000 UTC") }

const maxInput = 1 << 20

func readInput(cmd *cobra.Command, name string) (string, error) {
	in := cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", fmt.Errorf("the file cannot be read: %w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxInput))
	return string(text), err
}

// knownKeys reads public keys from where they are said to be, or gives those of the
// own database.
func knownKeys(ctx context.Context, settings, from string) (evidence.Keys, error) {
	switch {
	case from == "":
		return ownKeys(ctx, settings)
	case strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "http://"):
		return fetchKeys(ctx, from)
	}
	set, err := os.ReadFile(from)
	if err != nil {
		return nil, fmt.Errorf("the keys cannot be read: %w", err)
	}
	return evidence.ReadKeys(set)
}

func fetchKeys(ctx context.Context, address string) (evidence.Keys, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("the address of the keys cannot be read: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the keys cannot be fetched: %w", err)
	}
	defer response.Body.Close()
	set, err := io.ReadAll(io.LimitReader(response.Body, maxInput))
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("the keys cannot be fetched: the server answered %s", response.Status), err)
	}
	return evidence.ReadKeys(set)
}

// ownKeys reads the keys of the database that the settings name.
func ownKeys(ctx context.Context, settings string) (evidence.Keys, error) {
	cfg, err := config.Load(settings, os.Environ())
	if err != nil {
		return nil, err
	}
	app, err := openEvidence(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("the keys of this server cannot be read; name others with --keys (a file, or the address of a server's /.well-known/jwks.json): %w", err)
	}
	keys, err := app.engine.OwnKeys(ctx)
	return keys, errors.Join(err, app.Close())
}

// openEvidence opens the database and its keys, for commands that check or sign. It
// makes neither.
func openEvidence(ctx context.Context, cfg config.Config) (*App, error) {
	if cfg.DatabaseURL.IsZero() {
		// Opening would make an empty database, and a secret that seals nothing.
		if _, err := os.Stat(filepath.Join(cfg.Data, "openbot.db")); err != nil {
			return nil, fmt.Errorf("there is no database in %s: set OPENBOT_DATA or DATABASE_URL as the server has them", cfg.Data)
		}
	} else if cfg.SecretKey.IsZero() {
		return nil, errors.New("OPENBOT_SECRET_KEY is not set: this needs the one of the server")
	}
	app, err := OpenStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	err = app.store.Ready(ctx)
	var sealer *apps.Sealer
	if err == nil {
		_, sealer, err = openSealer(cfg)
	}
	if err != nil {
		return nil, errors.Join(err, app.Close())
	}
	app.engine = engine.New(engine.Options{Store: app.store, Ringer: silent{}, Live: silent{}, Sealer: sealer})
	return app, nil
}

// openSealer gives the secret of the server and what is derived from it.
func openSealer(cfg config.Config) (config.Secret, *apps.Sealer, error) {
	secret := cfg.SecretKey
	if secret.IsZero() {
		var err error
		if secret, err = config.SecretKey(cfg.Data); err != nil {
			return secret, nil, err
		}
	}
	sealer, err := apps.NewSealer(secret.Reveal())
	return secret, sealer, err
}

// withEvidence runs a command on the database of the settings.
func withEvidence(file *string, do func(ctx context.Context, cmd *cobra.Command, e *engine.Engine) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(*file, os.Environ())
		if err != nil {
			return err
		}
		app, err := openEvidence(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		return errors.Join(do(cmd.Context(), cmd, app.engine), app.Close())
	}
}

func auditCommand(file *string) *cobra.Command {
	var organization, export, pinned string
	verify := &cobra.Command{Use: "verify", Short: "Check the audit log, and name the first entry that was changed, removed or inserted.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var pin *evidence.Pin
			if pinned != "" {
				p, err := evidence.ParsePin(pinned)
				if err != nil {
					return err
				}
				pin = &p
			}
			if export != "" {
				return verifyExport(cmd, export, pin)
			}
			return withEvidence(file, func(ctx context.Context, cmd *cobra.Command, e *engine.Engine) error {
				return verifyAudit(ctx, cmd.OutOrStdout(), e, domain.OrganizationID(organization), pin)
			})(cmd, args)
		}}
	verify.Flags().StringVar(&organization, "organization", "", "check the log of this organization alone")
	verify.Flags().StringVar(&export, "file", "", "check an export (JSON lines) in place of the database; - reads it from the input")
	verify.Flags().StringVar(&pinned, "pin", "", "an entry that was written down earlier, as NUMBER:HASH; needs --organization when there are several")
	cmd := &cobra.Command{Use: "audit", Short: "Look after the audit log."}
	cmd.AddCommand(verify)
	return cmd
}

func verifyExport(cmd *cobra.Command, name string, pin *evidence.Pin) error {
	in := cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("the export cannot be read: %w", err)
		}
		defer file.Close()
		in = file
	}
	report, err := evidence.CheckFile(in, pin)
	if err != nil {
		return err
	}
	return told(cmd.OutOrStdout(), name, report)
}

// told prints a report in one line; a fault is an error.
func told(out io.Writer, about string, r evidence.Report) error {
	if r.Fault != nil {
		return fmt.Errorf("%s: %w", about, r.Fault)
	}
	waiting := ""
	if r.Waiting > 0 {
		waiting = fmt.Sprintf("; %d more wait to be chained", r.Waiting)
	}
	if r.Count == 0 {
		fmt.Fprintf(out, "%s: no entries%s\n", about, waiting)
		return nil
	}
	fmt.Fprintf(out, "%s: entries %d to %d are whole, the last has the hash %s%s\n", about, r.First, r.Count, r.Hash, waiting)
	return nil
}

func verifyAudit(ctx context.Context, out io.Writer, e *engine.Engine, only domain.OrganizationID, pin *evidence.Pin) error {
	ids, err := e.AuditedOrganizations(ctx)
	if err != nil {
		return err
	}
	if only != "" {
		if !slices.Contains(ids, only) {
			return fmt.Errorf("there is no organization %q: leave the flag out to see them all", only)
		}
		ids = []domain.OrganizationID{only}
	}
	if pin != nil && len(ids) > 1 {
		return errors.New("--pin is about one organization: name it with --organization")
	}
	var faults []error
	for _, id := range ids {
		report, err := e.CheckAudit(ctx, id, pin)
		if err == nil {
			err = told(out, string(id), report)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func keysCommand(file *string) *cobra.Command {
	var now bool
	rotate := &cobra.Command{Use: "rotate", Short: "Make a new key to sign receipts with; old receipts stay good.", Args: cobra.NoArgs,
		RunE: withEvidence(file, func(ctx context.Context, cmd *cobra.Command, e *engine.Engine) error {
			key, err := e.RotateKeys(ctx, now)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is published now and signs from %s on. Keep OPENBOT_SECRET_KEY: it is sealed with it.\n", key.ID, moment(key.ActiveAt.UnixMilli()))
			return nil
		})}
	rotate.Flags().BoolVar(&now, "now", false, "let it sign at once: whoever keeps the published keys for a while cannot check the next receipts until then")
	cmd := &cobra.Command{Use: "keys", Short: "Look after the keys that sign receipts."}
	cmd.AddCommand(rotate)
	return cmd
}
