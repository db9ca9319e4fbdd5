package wire

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"slices"
	"strings"
)

// events returns the rows of the table of events in package session, in its order: the
// elements of the variable eventTypes, {name: …, doors: …} or settlementOf(kind, name).
// It reads the source, because the package does not compile while a generated file is
// older than a type.
func (s *source) events() (all []Row, err error) {
	p, err := s.load(module + "/actors/session")
	if err != nil {
		return nil, err
	}
	table, ok := p.variables["eventTypes"].(*ast.CompositeLit)
	if !ok {
		return nil, fmt.Errorf("%s has no table eventTypes", p.path)
	}
	for _, element := range table.Elts {
		var name ast.Expr
		var doors []string
		switch e := element.(type) {
		case *ast.CallExpr:
			name, doors = e.Args[1], []string{strings.ToLower(strings.TrimPrefix(e.Args[0].(*ast.Ident).Name, "kind"))}
		case *ast.CompositeLit:
			for _, field := range e.Elts {
				switch pair := field.(*ast.KeyValueExpr); pair.Key.(*ast.Ident).Name {
				case "name":
					name = pair.Value
				case "doors":
					doors = p.doors(pair.Value)
				}
			}
		}
		value, err := s.evaluate(p, name)
		if err != nil {
			return nil, fmt.Errorf("a row of eventTypes: %w", err)
		}
		row := s.bodyRow(constant.StringVal(value))
		row.Doors = doors
		all = append(all, row)
	}
	return all, nil
}

// doors returns the doors that a variable or a literal lists.
func (p *sourcePackage) doors(expr ast.Expr) (all []string) {
	if id, ok := expr.(*ast.Ident); ok {
		expr = p.variables[id.Name]
	}
	list, _ := expr.(*ast.CompositeLit)
	for _, element := range list.Elts {
		if value, err := constantOf(p, element.(*ast.Ident).Name); err == nil {
			all = append(all, constant.StringVal(value))
		}
	}
	return all
}

// effects returns the rows of the effects, by name: the types of package session whose
// field Class has one value.
func (s *source) effects() (all []Row, err error) {
	p, err := s.load(module + "/" + sessionDir)
	if err != nil {
		return nil, err
	}
	for name, d := range p.types {
		object, ok := d.expr.(*ast.StructType)
		if ok && slices.ContainsFunc(object.Fields.List, isOneClass) {
			all = append(all, Row{Name: name, Type: sessionDir + "." + name})
		}
	}
	slices.SortFunc(all, func(a, b Row) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func isOneClass(f *ast.Field) bool {
	return len(f.Names) == 1 && f.Names[0].Name == "Class" && f.Tag != nil && strings.Contains(f.Tag.Value, `lim:"=`)
}
