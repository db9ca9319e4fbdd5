package planner

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// Only this file and celvalue.go use the CEL library. The library parses,
// checks types and evaluates; the lists here define the permitted subset of its
// language. None of its error texts reaches a result, only positions do.

// scopeFunctions are the functions that read the run. In the tree their names
// begin with @, and their first argument is the scope.
var scopeFunctions = [...]struct {
	name   string
	result *cel.Type
	call   func(f *StepFacts, name string) ref.Val
}{
	{"used", cel.BoolType, func(f *StepFacts, id string) ref.Val { return types.Bool(f.used(id)) }},
	{"fact", cel.StringType, func(f *StepFacts, name string) ref.Val { return types.String(f.fact(name)) }},
	{"role", cel.BoolType, func(f *StepFacts, name string) ref.Val { return types.Bool(f.role(name)) }},
	{"skill", cel.BoolType, func(f *StepFacts, name string) ref.Val { return types.Bool(slices.Contains(f.Skills, name)) }},
	{"space", cel.BoolType, func(f *StepFacts, name string) ref.Val { return types.Bool(slices.Contains(f.Spaces, name)) }},
}

// environment is the language of step conditions. approvals adds the call's
// arguments and tool. Both are built once, when the program starts.
var (
	environment = newEnvironment()
	approvals   = extended(environment, cel.Variable(varArgs, cel.DynType), cel.Variable(varTool, cel.StringType))
)

// extended returns a language with more variables.
func extended(e *cel.Env, more ...cel.EnvOption) *cel.Env {
	larger, err := e.Extend(more...)
	if err != nil {
		panic(fmt.Sprintf("planner: the language of approvals: %v", err))
	}
	return larger
}

func newEnvironment() *cel.Env {
	subset := env.NewLibrarySubset().AddIncludedMacros("has", "all", "exists")
	for _, o := range overloads {
		fn := &env.Function{Name: o.function}
		for _, id := range o.ids {
			fn.Overloads = append(fn.Overloads, &env.Overload{ID: id})
		}
		subset.AddIncludedFunctions(fn)
	}
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(subset)),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(WhenBytesMax),
		cel.ParserRecursionLimit(WhenDepthMax),
		cel.ParserErrorRecoveryLimit(1),
		cel.ExpressionNodeLimit(WhenNodesMax),
		cel.CostModelVersion(1), // an update of the library must not change which conditions hold
		cel.Macros(cel.ReceiverMacro("exists_one", 2, expandExistsOne)),
		cel.Variable(varCalls, cel.ListType(cel.DynType)),
		cel.Variable(varContext, cel.DynType),
		cel.Variable(varLast, cel.ListType(cel.StringType)),
		cel.Variable(varStep, cel.IntType),
		cel.Variable(varScope, cel.DynType),
	}
	for _, u := range usage {
		options = append(options, cel.Variable(u.name, cel.IntType))
	}
	for _, f := range scopeFunctions {
		call := func(of, name ref.Val) ref.Val {
			s, ok := of.(*scope)
			text, is := name.(types.String)
			if !ok || !is {
				return failed
			}
			return f.call(s.facts, string(text))
		}
		expand := func(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
			return eh.NewCall("@"+f.name, eh.NewIdent(varScope), args[0]), nil
		}
		options = append(options,
			cel.Function("@"+f.name, cel.Overload("@"+f.name, []*cel.Type{cel.DynType, cel.StringType}, f.result, cel.BinaryBinding(call))),
			cel.Macros(cel.GlobalMacro(f.name, 1, expand)))
	}
	e, err := cel.NewCustomEnv(options...)
	if err != nil {
		panic(fmt.Sprintf("planner: the language of when: %v", err))
	}
	return e
}

// expandExistsOne expands the macro as the library does, except that each step
// adds: the library's own steps can be free, and no limit would end them.
func expandExistsOne(eh cel.MacroExprFactory, list ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	if args[0].Kind() != ast.IdentKind || args[0].AsIdent() == eh.AccuIdentName() {
		return nil, eh.NewError(args[0].ID(), "not a name")
	}
	one, zero := eh.NewLiteral(types.IntOne), eh.NewLiteral(types.IntZero)
	step := eh.NewCall("_+_", eh.NewAccuIdent(), eh.NewCall("_?_:_", args[1], one, zero))
	only := eh.NewCall("_==_", eh.NewAccuIdent(), eh.NewLiteral(types.IntOne))
	return eh.NewComprehension(list, args[0].AsIdent(), eh.AccuIdentName(), eh.NewLiteral(types.IntZero), eh.NewLiteral(types.True), step, only), nil
}

// prices adds the size of the arguments to the cost of a call: the library
// leaves out some of them.
type prices struct{}

// CallCost returns one step and the size of the arguments.
func (prices) CallCost(_, _ string, args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1)
	for _, arg := range args {
		cost += size(arg)
	}
	return &cost
}

// size returns about how many steps reading a whole value takes.
func size(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 4
	case *jsonObject:
		return uint64(len(v.raw)) / 16
	case traits.Lister:
		total := uint64(1)
		for it := v.Iterator(); it.HasNext() == types.True; {
			total += 1 + size(it.Next())
		}
		return total
	}
	return 0
}

// when is a compiled condition. Nil always holds.
type when struct {
	program cel.Program
	bytes   int      // of its text
	used    []string // the tool_ids that it names, in its order
	calls   bool     // it reads calls
	args    bool     // it reads args
}

// compileWhen compiles a step's condition of at most WhenBytesMax bytes. The
// error has no path.
func compileWhen(reg *Registry, text string) (*when, *RuleError) {
	return compileIn(environment, reg, text)
}

// compileApproval is compileWhen for a condition on a call.
func compileApproval(reg *Registry, text string) (*when, *RuleError) {
	return compileIn(approvals, reg, text)
}

func compileIn(e *cel.Env, reg *Registry, text string) (compiled *when, bad *RuleError) {
	if text == "" {
		return nil, nil
	}
	defer func() {
		// If some text makes the library panic, the rule is refused and no
		// session stops.
		if recover() != nil {
			compiled, bad = nil, &RuleError{Detail: "does not compile"}
		}
	}()
	checked, issues := e.Compile(text)
	if issues.Err() != nil {
		return nil, &RuleError{Detail: "does not compile" + firstPlace(issues)}
	}
	tree := checked.NativeRep()
	l := language{reg: reg, tree: tree, last: e == environment}
	if ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(l.visit)); l.bad != nil {
		return nil, l.bad
	}
	if kind := checked.OutputType().Kind(); kind != types.BoolKind && kind != types.DynKind {
		return nil, &RuleError{Detail: "is neither true nor false: compare it with something"}
	}
	program, err := e.Program(checked, cel.CostTracking(prices{}), cel.CostLimit(WhenCostMax))
	if err != nil {
		return nil, &RuleError{Detail: "does not compile"}
	}
	return &when{program: program, bytes: len(text), used: l.used, calls: l.calls, args: l.args}, nil
}

// firstPlace returns the first position in the library's errors.
func firstPlace(issues *cel.Issues) string {
	line, column := math.MaxInt, 0
	for _, e := range issues.Errors() {
		l, c := e.Location.Line(), e.Location.Column()
		if l >= 1 && c >= 0 && (l < line || l == line && c < column) { // else it is about the text as a whole
			line, column = l, c
		}
	}
	if line == math.MaxInt {
		return ": it is too large, or nested too deep"
	}
	return at(line, column)
}

// language visits a checked tree and records the first construct that is not in
// our language.
type language struct {
	reg   *Registry
	last  bool // the language has last and calls: there is a step before
	tree  *ast.AST
	calls bool // the tree reads calls
	args  bool // the tree reads args
	bad   *RuleError
	used  []string // tool_ids bound so far
}

func (l *language) fault(e ast.Expr, unknown bool, format string, args ...any) {
	if l.bad == nil {
		start := l.tree.SourceInfo().GetStartLocation(e.ID())
		l.bad = &RuleError{Unknown: unknown, Detail: fmt.Sprintf(format, args...) + at(start.Line(), start.Column())}
	}
}

// visit checks one node. The checker has found all functions and variables.
func (l *language) visit(e ast.Expr) {
	if l.tree.GetType(e.ID()).Kind() == types.TypeKind {
		l.fault(e, false, "types are not supported")
	}
	switch e.Kind() {
	case ast.LiteralKind:
		switch e.AsLiteral().(type) {
		case types.Bool, types.Int, types.Double, types.String, types.Null:
		default:
			l.fault(e, false, "bytes and unsigned integers are not supported")
		}
	case ast.CallKind:
		switch call := e.AsCall(); call.FunctionName() {
		case callUsed:
			l.bindTool(call.Args()[1])
		case callSkill, callSpace:
			if _, ok := call.Args()[1].AsLiteral().(types.String); !ok {
				l.fault(call.Args()[1], false, "%s needs a name as a literal text,", call.FunctionName()[1:])
			}
		}
	case ast.IdentKind:
		name := e.AsIdent()
		l.calls, l.args = l.calls || name == varCalls, l.args || name == varArgs
		if (name == varLast || name == varCalls) && !l.last {
			l.fault(e, false, "a call has no %s", name)
		}
	case ast.SelectKind, ast.ListKind, ast.ComprehensionKind:
	default:
		l.fault(e, false, "maps and messages are not supported")
	}
}

// bindTool replaces the tool name given to used by the tool's tool_id.
func (l *language) bindTool(arg ast.Expr) {
	name, ok := arg.AsLiteral().(types.String) // nil if it is none
	if !ok {
		l.fault(arg, false, "used needs a tool's name as a literal text, which can be checked,")
		return
	}
	t, ok := l.reg.Lookup(string(name))
	if !ok {
		l.fault(arg, true, "there is no tool %+q", clip(string(name), ToolIDBytesMax))
		return
	}
	id := l.reg.specs[t].ToolID
	l.used = append(l.used, id)
	arg.SetKindCase(ast.NewExprFactory().NewLiteral(arg.ID(), types.String(id)))
}

// holds evaluates the condition. A code says why it could not be evaluated.
func (w *when) holds(s *scope) (holds bool, code string) {
	if w == nil {
		return true, ""
	}
	defer func() {
		if recover() != nil {
			holds, code = false, WhenFailed
		}
	}()
	if s.costMax > 0 && s.cost >= s.costMax {
		return false, WhenTooCostly
	}
	result, details, err := w.program.Eval(s)
	s.cost += WhenCostMax
	if cost := details.ActualCost(); cost != nil && *cost < WhenCostMax {
		s.cost -= WhenCostMax - int(*cost)
	}
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return false, WhenTooCostly
	}
	truth, ok := result.(types.Bool)
	if err != nil || !ok {
		return false, WhenFailed
	}
	return bool(truth), ""
}
