package repository

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"reflect"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm/schema"
)

// place says where in a row type a column goes.
type place struct {
	index []int
	// as is the plain type of a field of a named one, which the driver fills without
	// looking for a way each time; nil for the field's own.
	as reflect.Type
}

var plain = map[reflect.Kind]reflect.Type{
	reflect.String: reflect.TypeFor[*string](), reflect.Bool: reflect.TypeFor[*bool](),
	reflect.Int: reflect.TypeFor[*int](), reflect.Int64: reflect.TypeFor[*int64](),
}

var placesByType sync.Map // reflect.Type to map[string]place

// placesOf gives where each column of a row type goes, by its name.
func placesOf[R any]() (map[string]place, error) {
	kind := reflect.TypeFor[R]()
	if known, ok := placesByType.Load(kind); ok {
		return known.(map[string]place), nil
	}
	parsed, err := schema.Parse(new(R), &schemas, schema.NamingStrategy{})
	if err != nil {
		return nil, err
	}
	places := make(map[string]place, len(parsed.DBNames))
	for name, field := range parsed.FieldsByDBName {
		places[name] = place{field.StructField.Index, plain[field.FieldType.Kind()]}
	}
	placesByType.Store(kind, places)
	return places, nil
}

// readRows reads all rows of an answer. NULL leaves the zero value.
func readRows[R any](found pgx.Rows) ([]R, error) {
	places, err := placesOf[R]()
	if err != nil {
		return nil, err
	}
	columns := found.FieldDescriptions()
	order := make([]place, len(columns))
	for i, column := range columns {
		at, ok := places[column.Name]
		if !ok {
			return nil, fmt.Errorf("no field of %s takes the column %s", reflect.TypeFor[R](), column.Name)
		}
		order[i] = at
	}
	rows := []R{}
	targets := make([]any, len(columns))
	for found.Next() {
		var row R
		v := reflect.ValueOf(&row).Elem()
		values := found.RawValues()
		left := false
		for i, at := range order {
			targets[i] = nil // the driver skips it
			if values[i] == nil {
				continue
			}
			field := v.FieldByIndex(at.index)
			done, err := fill(field, columns[i], values[i])
			if err != nil {
				return nil, err
			}
			if done {
				continue
			}
			left = true
			if field = field.Addr(); at.as != nil {
				field = field.Convert(at.as)
			}
			targets[i] = field.Interface()
		}
		if left {
			if err := found.Scan(targets...); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, found.Err()
}

// fill reads a value that came in one of the forms that nearly all columns have, at a
// fraction of what the driver's own way costs. false leaves the value to the driver.
func fill(field reflect.Value, column pgconn.FieldDescription, value []byte) (bool, error) {
	inBinary := column.Format == pgx.BinaryFormatCode
	switch kind := field.Kind(); {
	case kind == reflect.Pointer:
		to := reflect.New(field.Type().Elem())
		done, err := fill(to.Elem(), column, value)
		if done && err == nil {
			field.Set(to)
		}
		return done, err
	case column.DataTypeOID == pgtype.TextOID && kind == reflect.String:
		field.SetString(string(value))
	case column.DataTypeOID == pgtype.TextOID:
		scanner, ok := field.Addr().Interface().(sql.Scanner)
		if !ok {
			return false, nil
		}
		return true, scanner.Scan(value)
	case column.DataTypeOID == pgtype.Int8OID && inBinary && len(value) == 8 && field.CanInt():
		number := int64(binary.BigEndian.Uint64(value)) //nolint:gosec // the sign is the first bit
		if field.OverflowInt(number) {
			return false, nil
		}
		field.SetInt(number)
	case column.DataTypeOID == pgtype.BoolOID && inBinary && len(value) == 1 && kind == reflect.Bool:
		field.SetBool(value[0] != 0)
	default:
		return false, nil
	}
	return true, nil
}
