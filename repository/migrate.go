package repository

import (
	"context"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"gorm.io/gorm"

	"openbot/domain"
	"openbot/repository/migration"
)

// versionTable is where the migrations that ran are noted.
const versionTable = "schema_versions"

// migrateWait is how many seconds a program waits for another that migrates.
const migrateWait = 600

// Migration is one numbered step of the schema.
type Migration struct {
	Version   int64
	Name      string     // of its file, e.g. "0001_init.sql"
	AppliedAt *time.Time // nil while it has not run
}

// Migrate brings the schema to the version of this program. On PostgreSQL a lock
// makes a second program wait, which then finds nothing left to do. It gives
// precondition for a schema that is newer than the program.
func (s *Store) Migrate(ctx context.Context) error {
	have, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	if need := s.needVersion(); have > need {
		return newerSchema(have, need)
	}
	pool, err := s.writer.DB()
	if err != nil {
		return s.wrap(ctx, "migrate the schema", err)
	}
	options := []goose.ProviderOption{goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true), goose.WithSlog(s.log)}
	dialect := goose.DialectSQLite3
	if s.postgres {
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, migrateWait))
		if err != nil {
			return s.wrap(ctx, "lock the schema", err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(dialect, pool, s.migrations(), options...)
	if err != nil {
		return s.wrap(ctx, "read the migrations", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return s.wrap(ctx, "migrate the schema", err)
	}
	return s.raisePositions(ctx)
}

// MigrationStatus gives every migration that this program knows, oldest first. It
// changes nothing.
func (s *Store) MigrationStatus(ctx context.Context) ([]Migration, error) {
	known := s.known()
	there, err := s.hasVersions(ctx)
	if err != nil || !there {
		return known, err
	}
	var rows []struct {
		VersionID int64
		Tstamp    time.Time
	}
	err = s.read(ctx).Table(versionTable).Select("version_id", "tstamp").Where("is_applied").Find(&rows).Error
	if err != nil {
		return nil, s.wrap(ctx, "read the schema version", err)
	}
	for i := range known {
		for _, row := range rows {
			if row.VersionID == known[i].Version {
				applied := row.Tstamp.UTC()
				known[i].AppliedAt = &applied
			}
		}
	}
	return known, nil
}

// Ready reports whether the database answers and has the schema of this program.
// It gives unavailable with words that say what to do.
func (s *Store) Ready(ctx context.Context) error {
	have, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	switch need := s.needVersion(); {
	case have < need:
		return domain.Errorf(domain.CodeUnavailable, "SchemaOld",
			"The database has schema version %d, this program needs %d: run `openbot migrate up`.", have, need)
	case have > need:
		return newerSchema(have, need)
	}
	return nil
}

func newerSchema(have, need int64) error {
	return domain.Errorf(domain.CodeUnavailable, "SchemaNew",
		"The database has schema version %d, this program knows only %d: run the newer program.", have, need)
}

// schemaVersion is the number of the newest migration that ran; 0 for none.
func (s *Store) schemaVersion(ctx context.Context) (int64, error) {
	there, err := s.hasVersions(ctx)
	if err != nil || !there {
		return 0, err
	}
	var version int64
	err = s.read(ctx).Table(versionTable).Select("COALESCE(MAX(version_id), 0)").Where("is_applied").Scan(&version).Error
	return version, s.wrap(ctx, "read the schema version", err)
}

func (s *Store) hasVersions(ctx context.Context) (bool, error) {
	query := "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?)"
	if s.postgres {
		query = "SELECT to_regclass(?) IS NOT NULL"
	}
	var there bool
	err := s.read(ctx).Raw(query, versionTable).Scan(&there).Error
	return there, s.wrap(ctx, "read the schema version", err)
}

func (s *Store) migrations() fs.FS {
	files, folder := fs.FS(migration.SQLite), "sqlite"
	if s.postgres {
		files, folder = migration.Postgres, "postgres"
	}
	sub, err := fs.Sub(files, folder)
	if err != nil {
		panic("the embedded migrations have no folder " + folder)
	}
	return sub
}

// known lists the embedded migrations by number.
func (s *Store) known() []Migration {
	names, err := fs.Glob(s.migrations(), "*.sql")
	if err != nil {
		panic("the pattern of migration files is wrong")
	}
	list := make([]Migration, 0, len(names))
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic("the migration " + name + " has no number")
		}
		list = append(list, Migration{Version: version, Name: name})
	}
	return list
}

func (s *Store) needVersion() int64 {
	known := s.known()
	return known[len(known)-1].Version
}

// raisePositions makes sure, at a start, that the positions of new events will be
// above those of all that are there. Positions come from transaction IDs, which
// begin anew when the data is restored into another cluster. The check reads a
// summary of the table, not the table.
func (s *Store) raisePositions(ctx context.Context) error {
	if !s.postgres {
		return nil
	}
	if have, err := s.schemaVersion(ctx); err != nil || have != s.needVersion() {
		return err
	}
	err := s.write(ctx).Transaction(func(tx *gorm.DB) error {
		var above bool
		if err := tx.Raw(`SELECT EXISTS (SELECT 1 FROM events WHERE "position" >= ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint
			+ (SELECT value FROM event_offset)) << 12))
			OR EXISTS (SELECT 1 FROM audit_entries WHERE "position" >= ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint
			+ (SELECT value FROM event_offset)) << 16))`).Scan(&above).Error; err != nil || !above {
			return err
		}
		s.log.WarnContext(ctx, "the data was restored into another database cluster; positions of events go on above the old ones")
		return tx.Exec(`UPDATE event_offset SET value = GREATEST(value, (SELECT (MAX("position") >> 12) + 1 FROM events),
			(SELECT (MAX("position") >> 16) + 1 FROM audit_entries))`).Error
	})
	return s.wrap(ctx, "look at the positions of events", err)
}
