package repository

import (
	"database/sql/driver"
	"fmt"
	"reflect"
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
	update  string
	inserts sync.Map // number of rows to text
}

// column is one of a row type.
type column struct {
	name  string
	index []int
	fixed bool // written once, by the insert
}

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
	var sets []string
	for _, name := range parsed.DBNames {
		field := parsed.FieldsByDBName[name]
		if !field.Creatable {
			continue
		}
		s.columns = append(s.columns, column{name, field.StructField.Index, !field.Updatable})
		if field.Updatable {
			sets = append(sets, `"`+name+`" = ?`)
		}
	}
	s.update = `UPDATE "` + s.table + `" SET ` + strings.Join(sets, ", ") + " WHERE id = ? AND version = ?"
	known, _ := shapesByType.LoadOrStore(kind, s)
	return known.(*shape)
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
		row := reflect.ValueOf(&rows[i]).Elem()
		for _, c := range s.columns {
			value, err := valueOf(row.FieldByIndex(c.index))
			if err != nil {
				return refused(err)
			}
			args = append(args, value)
		}
	}
	return func(tx *gorm.DB) *gorm.DB { return tx.Exec(s.insertText(len(rows)), args...) }
}

// updateOf makes the statement that writes what may change of a row where its ID and
// version still stand.
func updateOf[R any](next *R, id string, version int64) func(tx *gorm.DB) *gorm.DB {
	s := shapeOf[R]()
	args := make([]any, 0, len(s.columns)+2)
	row := reflect.ValueOf(next).Elem()
	for _, c := range s.columns {
		if c.fixed {
			continue
		}
		value, err := valueOf(row.FieldByIndex(c.index))
		if err != nil {
			return refused(err)
		}
		args = append(args, value)
	}
	args = append(args, id, version)
	return func(tx *gorm.DB) *gorm.DB { return tx.Exec(s.update, args...) }
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
