package repository

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/jackc/pgx/v5"
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
		for i, at := range order {
			if values[i] == nil {
				targets[i] = nil // the driver skips it
				continue
			}
			field := v.FieldByIndex(at.index).Addr()
			if at.as != nil {
				field = field.Convert(at.as)
			}
			targets[i] = field.Interface()
		}
		if err := found.Scan(targets...); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, found.Err()
}
