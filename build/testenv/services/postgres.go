//go:build unix

package services

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

const postgresUser = "openbot"

// PostgresOptions changes how PostgreSQL is started.
type PostgresOptions struct {
	// Durable waits for the disk at each commit, for measurements. Without it a commit
	// outlasts the death of the server but not a power cut, which no test makes.
	Durable bool
	// MaxConnections is 200 when it is 0.
	MaxConnections int
}

// Postgres is a PostgreSQL server of one's own. Its methods may be called from
// several goroutines.
type Postgres struct {
	process  process
	remove   func() error
	port     string
	password string
}

// FindPostgres gives the folder with initdb and postgres. Its error says what to
// install.
func FindPostgres() (string, error) {
	var folders []string
	if output, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(output)))
	}
	versions, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(versions, func(a, b string) int { return versionOf(b) - versionOf(a) })
	folders = append(folders, versions...)
	if path, err := exec.LookPath("postgres"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	for _, folder := range folders {
		if isProgram(filepath.Join(folder, "postgres")) && isProgram(filepath.Join(folder, "initdb")) {
			return folder, nil
		}
	}
	return "", errors.New("PostgreSQL is not installed: install it (Debian: apt-get install postgresql)")
}

func versionOf(folder string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
	return version
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// StartPostgres starts PostgreSQL with its files in dir/postgres, or in a new
// temporary folder when dir is empty, and returns when it answers. Stop ends it and
// removes its files.
func StartPostgres(dir string, options PostgresOptions) (*Postgres, error) {
	programs, err := FindPostgres()
	if err != nil {
		return nil, err
	}
	who, err := unprivileged()
	if err != nil {
		return nil, err
	}
	folder, remove, err := folderFor(dir, "postgres", who)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL has no folder for its files: %w", err)
	}
	p := &Postgres{remove: remove, password: rand.Text()}
	p.process = process{
		name: "PostgreSQL", path: filepath.Join(programs, "postgres"), folder: folder, account: who,
		stopSignal:  syscall.SIGINT,  // fast: ends connections, writes a checkpoint
		deathSignal: syscall.SIGQUIT, // at once, with all children
		ready:       p.answers,
	}
	if err := p.initialize(filepath.Join(programs, "initdb"), who); err != nil {
		return nil, errors.Join(err, remove())
	}
	err = withFreePort(func(port string) error {
		p.port = port
		p.process.args = postgresArguments(folder, port, options)
		return p.process.start()
	})
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return p, nil
}

func (p *Postgres) initialize(initdb string, who *account) error {
	// Whoever may connect may run programs as the user of the server, so even a
	// server of a minute has a password.
	passwordFile := filepath.Join(p.process.folder, "..", "postgres.password")
	err := os.WriteFile(passwordFile, []byte(p.password), 0o600)
	defer os.Remove(passwordFile)
	if who != nil {
		err = errors.Join(err, os.Chown(passwordFile, int(who.uid), int(who.gid)))
	}
	if err != nil {
		return fmt.Errorf("PostgreSQL cannot be set up: %w", err)
	}
	command := exec.Command(initdb, "--pgdata="+p.process.folder, "--username="+postgresUser, "--pwfile="+passwordFile,
		"--auth=password", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	command.Dir = p.process.folder
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	command.SysProcAttr = attributes(who, 0)
	if output, err := command.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		return fmt.Errorf("PostgreSQL cannot be set up: %w: %s", err, lines[len(lines)-1])
	}
	return nil
}

func postgresArguments(folder, port string, options PostgresOptions) []string {
	connections := options.MaxConnections
	if connections == 0 {
		connections = 200
	}
	values := []string{
		"listen_addresses=127.0.0.1", "port=" + port, "unix_socket_directories=",
		"max_connections=" + strconv.Itoa(connections), "shared_buffers=128MB", "timezone=UTC", "log_timezone=UTC",
		// A commit that was answered must outlast kill -9 of the server, so this stays
		// on whatever else is saved.
		"synchronous_commit=on",
	}
	if !options.Durable {
		values = append(values, "fsync=off", "full_page_writes=off")
	}
	arguments := []string{"-D", folder}
	for _, value := range values {
		arguments = append(arguments, "-c", value)
	}
	return arguments
}

func (p *Postgres) answers(ctx context.Context) error { return p.run(ctx, "SELECT 1") }

func (p *Postgres) run(ctx context.Context, statement string) error {
	connection, err := pgconn.Connect(ctx, p.URL())
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, statement).ReadAll()
	return errors.Join(err, connection.Close(ctx))
}

// URL is the address of the database postgres, as a user who may do everything.
func (p *Postgres) URL() string { return p.urlOf("postgres") }

func (p *Postgres) urlOf(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(postgresUser, p.password),
		Host: "127.0.0.1:" + p.port, Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// NewDatabase makes an empty database and gives its address.
func (p *Postgres) NewDatabase(name string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	if err := p.run(ctx, "CREATE DATABASE "+quoted); err != nil {
		return "", fmt.Errorf("the database %s cannot be made: %w", name, err)
	}
	return p.urlOf(name), nil
}

// Kill ends the server and all its children at once, as a crash would; its files
// stay for Restart.
func (p *Postgres) Kill() { p.process.kill() }

// Restart ends the server in order if it runs, and starts it again on the same port
// with the same files. It returns when the server answers.
func (p *Postgres) Restart() error { return p.process.restart() }

// Freeze lets the server hang: connections stay open and nothing answers.
func (p *Postgres) Freeze() error { return p.process.freeze(true) }

// Thaw lets a frozen server go on.
func (p *Postgres) Thaw() error { return p.process.freeze(false) }

// Fault says how the server ended when none of these methods had ended it, or is nil.
func (p *Postgres) Fault() error { return p.process.fault() }

// Stop ends the server in order and removes its files. It may be called twice.
func (p *Postgres) Stop() error {
	p.process.stop()
	return p.remove()
}
