package repository

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// shape is what statements on the rows of one type are made of, and their texts. GORM
// makes the text of each statement anew, at several times the cost.
type shape struct {
	table   string
	columns []column
	id      []int // where the ID and the version are; nil without
	version []int
	updates sync.Map // which of the columns that may change, as bits, to text
	inserts sync.Map // number of rows to text
}

// column is one of a row type.
type column struct {
	name  string
	index []int
	fixed bool // written once, by the insert
	loose bool // written by statements that leave the version alone
}

// looseColumns are written by every update, since a version does not tell how they stand.
var looseColumns = []string{"status", "due_at", "lease_until", "last_used_at"}

var shapesByType sync.Map // reflect.Type to *shape

func shapeOf[R any]() *shape {
	kind := reflect.TypeFor[R]()
	if known, ok := shapesByType.Load(kind); ok {
		return known.(*shape)
	}
	parsed, err := schema.Parse(new(R), &schemas, schema.NamingStrategy{})
	if err != nil {
		panic("a row type cannot be read: " + err.Error())
	}
	s := &shape{table: parsed.Table}
	for _, name := range parsed.DBNames {
		field := parsed.FieldsByDBName[name]
		if !field.Creatable {
			continue
		}
		index := field.StructField.Index
		s.columns = append(s.columns, column{name, index, !field.Updatable, slices.Contains(looseColumns, name)})
		switch name {
		case "id":
			s.id = index
		case "version":
			s.version = index
		}
	}
	known, _ := shapesByType.LoadOrStore(kind, s)
	return known.(*shape)
}

// key gives the ID and the version of a row.
func (s *shape) key(row any) (string, int64) {
	v := reflect.ValueOf(row).Elem()
	return v.FieldByIndex(s.id).String(), v.FieldByIndex(s.version).Int()
}

// valuesOf gives the values of a row in the order of the columns; changing leaves those
// out that are written once.
func (s *shape) valuesOf(row any, changing bool) ([]any, error) {
	v := reflect.ValueOf(row).Elem()
	values := make([]any, 0, len(s.columns)+2)
	for _, c := range s.columns {
		if changing && c.fixed {
			continue
		}
		value, err := valueOf(v.FieldByIndex(c.index))
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

// insertText gives the text that inserts so many rows.
func (s *shape) insertText(rows int) string {
	if known, ok := s.inserts.Load(rows); ok {
		return known.(string)
	}
	names := make([]string, len(s.columns))
	for i, c := range s.columns {
		names[i] = `"` + c.name + `"`
	}
	places := "(" + strings.Repeat("?, ", len(names)-1) + "?)"
	text := `INSERT INTO "` + s.table + `" (` + strings.Join(names, ", ") + ") VALUES " + strings.Repeat(places+", ", rows-1) + places
	s.inserts.Store(rows, text)
	return text
}

// insertOf makes the statement that inserts rows.
func insertOf[R any](rows []R) func(tx *gorm.DB) *gorm.DB {
	s := shapeOf[R]()
	args := make([]any, 0, len(rows)*len(s.columns))
	for i := range rows {
		values, err := s.valuesOf(&rows[i], false)
		if err != nil {
			return refused(err)
		}
		args = append(args, values...)
	}
	return func(tx *gorm.DB) *gorm.DB { return done(tx, s.insertText(len(rows)), args...) }
}

// updateText gives the text that writes the columns named by bits, counted among those
// that may change.
func (s *shape) updateText(which uint64) string {
	if known, ok := s.updates.Load(which); ok {
		return known.(string)
	}
	var sets []string
	n := 0
	for _, c := range s.columns {
		if c.fixed {
			continue
		}
		if which&(1<<n) != 0 {
			sets = append(sets, `"`+c.name+`" = ?`)
		}
		n++
	}
	text := `UPDATE "` + s.table + `" SET ` + strings.Join(sets, ", ") + " WHERE id = ? AND version = ?"
	s.updates.Store(which, text)
	return text
}

// updateOf makes the statement that brings a row to its next state where its ID and version
// still stand. It leaves out columns that stood as they are to be at that version. kept is
// called when the commit has succeeded.
func updateOf[R any](m *images, next *R, version int64) (write func(tx *gorm.DB) *gorm.DB, kept func()) {
	s := shapeOf[R]()
	values, err := s.valuesOf(next, true)
	if err != nil {
		return refused(err), nil
	}
	id, nextVersion := s.key(next)
	was := m.of(s, id, version)
	args := make([]any, 0, len(values)+2)
	var which uint64
	n := 0
	for _, c := range s.columns {
		if c.fixed {
			continue
		}
		if was == nil || c.loose || was[n] != values[n] {
			which |= 1 << n
			args = append(args, values[n])
		}
		n++
	}
	args = append(args, id, version)
	return func(tx *gorm.DB) *gorm.DB { return done(tx, s.updateText(which), args...) },
		func() { m.keep(s, id, nextVersion, values) }
}

func refused(err error) func(tx *gorm.DB) *gorm.DB {
	return func(tx *gorm.DB) *gorm.DB {
		tx = tx.Session(&gorm.Session{})
		_ = tx.AddError(err)
		return tx
	}
}

// valueOf gives a field as the driver takes it without looking for a way: named types as
// plain ones, documents as their text.
func valueOf(field reflect.Value) (any, error) {
	switch field.Kind() {
	case reflect.String:
		return field.String(), nil
	case reflect.Int, reflect.Int64:
		return field.Int(), nil
	case reflect.Bool:
		return field.Bool(), nil
	case reflect.Pointer:
		if field.IsNil() {
			return nil, nil
		}
		return valueOf(field.Elem())
	}
	switch value := field.Interface().(type) {
	case driver.Valuer:
		return value.Value()
	case []byte:
		return value, nil
	default:
		return nil, fmt.Errorf("a row has a field of type %T, which no column takes", value)
	}
}
