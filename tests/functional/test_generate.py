"""The generator of the op list: what it refuses, and what it writes."""

import ast
import json
import pathlib
import re
import tempfile
import unittest

import entry
import errors
import expression
import gradient
import header
import loops
import main
import man
import manual
import names
import pytorch
import schema
import source
import symbols

OPS = sorted(str(p) for p in (pathlib.Path(__file__).resolve().parents[2] / "functional/ops").glob("*.toml"))


def read(text):
    """The entries of one family given as text."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "family.toml"
        path.write_text(text)
        return entry.read_all([str(path)])


def operation(extra):
    return '[op]\nsummary = "Does."\noperands = ["x"]\ninfer = "same"\nkernel = "copy"\n' + extra


def option(rest):
    return operation('struct = "s"\noptions = [{ name = "o", doc = "d", ' + rest + " }]\n")


class Refused(unittest.TestCase):
    def refused(self, text, word):
        with self.assertRaisesRegex(entry.EntryError, word):
            read(text)

    def test_options_whose_zero_is_not_the_default(self):
        self.refused(option('type = "float", default = 0.9'), "0 does not mean")
        self.refused(option('type = "int", default = -100'), "0 does not mean")
        self.refused(option('type = "bool", default = true'), "inverted")
        self.refused(option('type = "choice", choices = ["a", "b"], default = 1'), "first choice")
        self.refused(option('type = "float", zero_flag = true'), "zero_flag")
        self.refused(option('type = "scalar"'), "cannot be an option")

    def test_options_with_a_flag_for_zero(self):
        op, = read(option('type = "float", default = 0.9, zero_flag = true'))
        self.assertIn("bool o_is_zero;", header.options_struct(op))
        self.assertIn("EDDY_OPTION(options, o_is_zero)", source.emit([op]))

    def test_an_option_whose_zero_is_not_given(self):
        op, = read(option('type = "int", zero_is_none = true'))
        described, = json.loads(schema.emit([op]))["ops"]
        self.assertIsNone(described["attributes"][0]["default"])
        self.refused(option('type = "float", zero_is_none = true'), "zero_is_none")

    def test_axes_need_not_be_given(self):
        op, = read(operation('struct = "s"\nattributes = [{ name = "a", type = "axes", doc = "d" }, '
                             '{ name = "b", type = "shape", door = "axes", doc = "d" }, { name = "c", type = "shape", doc = "d" }]\n'))
        described, = json.loads(schema.emit([op]))["ops"]
        self.assertEqual([a["required"] for a in described["attributes"]], [False, False, True])

    def test_options_of_two_numbers(self):
        op, = read(option('type = "pair"'))
        self.assertIn("eddy_pair o; /* d */", header.options_struct(op))
        self.assertIn("if (EDDY_HAS_OPTION(options, o))", source.emit([op]))
        self.refused(option('type = "pair", default = 1'), "0 does not mean")

    def test_unknown_words(self):
        self.refused(operation('sumary = "x"\n'), "unknown key")
        self.refused(operation('promotion = "most"\n'), "promotion")
        self.refused(operation('dtypes = ["f31"]\n'), "dtype")
        self.refused(operation('forms = ["outplace"]\n'), "form")
        self.refused(operation('alias = "second"\n'), "alias")
        self.refused('[op]\nsummary = "s"\noperands = ["x"]\nexpression = "-x"\nulp = "n"\n', "number for its bound")
        self.refused(operation('layout = "y"\n'), "layout of unknown operand")
        self.refused(operation('layout = "x"\nlate_shape = true\n'), "layout names a tensor")
        self.refused('[op]\nsummary = "s"\noperands = [{ name = "l", kind = "list" }, "x"]\nlayout = "x"\ninfer = "i"\nkernel = "k"\n',
                     "layout names a tensor")
        self.refused(option('type = "bool"') + 'last_where = "o"\n', "last_where names a bool option")
        self.refused(option('type = "int"') + 'layout = "x"\nlast_where = "o"\n', "last_where names a bool option")
        self.refused(operation('attributes = [{ name = "a", type = "complex", doc = "d" }]\n'), "unknown type")

    def test_entries_that_are_not_whole(self):
        self.refused('[op]\noperands = ["x"]\ninfer = "same"\nkernel = "copy"\n', "no summary")
        self.refused('[op]\nsummary = "s"\noperands = ["x"]\n', "expression or a kernel")
        self.refused('[op]\nsummary = "s"\noperands = ["x"]\nkernel = "copy"\n', "no infer")
        self.refused(operation('attributes = [{ name = "a", type = "int" }]\nstruct = "s"\n'), "no doc")
        self.refused(operation('attributes = [{ name = "a", type = "int", doc = "d" }]\n'), "need `struct`")

    def test_names(self):
        self.refused(operation("").replace("[op]", "[op_s]"), "does not end in _s")
        self.refused(operation('attributes = [{ name = "x", type = "int", doc = "d", extra = true }]\n'), "used twice")
        self.refused(operation('gradient = { y = "grad" }\n'), "unknown operand")

    def test_written_operands(self):
        written = operation("").replace('"x"', '{ name = "x", access = "mut" }')
        self.refused(written + 'forms = ["into"]\n', "no forms with a target")
        op, = read(written)
        self.assertIn("A new tensor, or NULL; writes to x.", header.documentation(header.functions(op)[0]))

    def test_errors_are_tables_of_statuses(self):
        self.refused(operation('errors = "SHAPE_MISMATCH."\n'), "is a table")
        self.refused(operation('errors = { SHAPE = "when" }\n'), "unknown status")
        self.refused(operation('late_errors = { OUT_OF_RANGE = ["when", "A sentence."] }\n'), "no clause")

    def test_one_name_in_two_files(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("a.toml", "b.toml")]
            for path in paths:
                path.write_text(operation(""))
            with self.assertRaisesRegex(entry.EntryError, "is in a.toml too"):
                entry.read_all([str(p) for p in paths])


class Expressions(unittest.TestCase):
    def compiled(self, text, dtype="f32", names=None):
        return expression.compile_expression(text, names or {"a": "v", "b": "v", "c": "c"}, dtype)

    def refused(self, text, word, dtype="f32"):
        with self.assertRaisesRegex(expression.ExpressionError, word):
            self.compiled(text, dtype)

    def test_operators_are_words_of_the_compute_type(self):
        self.assertEqual(self.compiled("a + b * 2")[0], "eddy_add_f32(a, eddy_mul_f32(b, 0x1.0000000000000p+1f))")
        self.assertEqual(self.compiled("a - 1", "i8")[0], "eddy_sub_i8(a, 1)")
        self.assertEqual(self.compiled("-a", "bf16")[0], "eddy_neg_f32(a)")
        self.assertEqual(self.compiled("a < b", "bool")[:2], ("eddy_lt_truth(a, b)", "c"))

    def test_the_vocabulary_is_closed(self):
        self.refused("gamma(a)", "no word")
        self.refused("a ** b", "not in the language")
        self.refused("a if c else b", "not in the language")
        self.refused("a < b < a", "not in the language")
        self.refused("a[0]", "not in the language")
        self.refused("__import__('os').system('x')", "not in the language")
        self.refused("d + 1", "no operand")
        self.refused("a +", "cannot read")

    def test_kinds_and_types_are_checked(self):
        self.refused("select(a, a, b)", "condition")
        self.refused("a + c", "condition")
        self.refused("select(c, a)", "takes 3")
        self.refused("exp(a)", "no form for i32", "i32")
        self.refused("a + b", "no form for bool", "bool")
        self.refused("logical_or(a, b)", "for bool", "f32")
        self.refused("a + 0.5", "no value of i32", "i32")
        self.refused("bitwise_and(a, b)", "no form for f32")
        self.refused("a and c", "a value stands")
        self.refused("not a", "a value stands")

    def test_conditions_are_joined_in_bool(self):
        self.assertEqual(self.compiled("a < b and c", "i8")[:2], ("eddy_logical_and_truth(eddy_lt_i8(a, b), c)", "c"))
        self.assertEqual(self.compiled("c or not c")[0], "eddy_logical_or_truth(c, eddy_logical_not_truth(c))")
        self.assertEqual(self.compiled("c != (a == 0)")[0], "eddy_ne_truth(c, eddy_eq_f32(a, 0x0.0p+0f))")

    def test_a_choice_has_an_expression_each(self):
        text = ('[op]\nsummary = "s"\noperands = ["x"]\nresult = "compute"\nexpression = { how = EXPRESSIONS }\n'
                'options = [{ name = "how", type = "choice", choices = ["one", "two"], doc = "d" }]\n')
        op, = read(text.replace("EXPRESSIONS", '["-x", "abs(x)"]').replace("result", 'dtypes = ["f32"]\nresult'))
        block = loops.emit_block([op], "family_0")
        self.assertIn("eddy_neg_f32(x)", block)
        self.assertIn("case 1:\n        op_f32_two(data", block)
        with self.assertRaisesRegex(entry.EntryError, "an expression each"):
            read(text.replace("EXPRESSIONS", '["-x"]'))

    def test_numbers_of_an_op_are_read_in_the_compute_type(self):
        op, = read('[op]\nsummary = "s"\noperands = ["x"]\nresult = "compute"\nexpression = "x * slope"\ndtypes = ["f32", "f64"]\n'
                   'options = [{ name = "slope", type = "float", doc = "d" }]\n')
        for dtype in op.dtypes:
            self.assertIn(f"const eddy_compute_{dtype} slope = (eddy_compute_{dtype})((const eddy_arguments_op *)attributes)->slope;",
                          loops.emit_block([op], "family_0"))

    def test_halves_go_through_f32(self):
        text = '[op]\nsummary = "s"\noperands = ["a", "b"]\nresult = "bool"\nexpression = "a < b"\ndtypes = DTYPES\n'
        op, = read(text.replace("DTYPES", '["f32", "bf16"]'))
        block = loops.emit_block([op], "family_0")
        self.assertIn("half = {op_f32, 2, true};", block)
        self.assertIn(".run_bf16(&half, data", block)
        self.assertNotIn("op_bf16_body", block)
        with self.assertRaisesRegex(expression.ExpressionError, "goes through f32"):
            loops.emit_block(read(text.replace("DTYPES", '["f16"]')), "family_0")

    def test_what_only_moves_shares_the_loop_of_its_width(self):
        op = next(op for op in entry.read_all(OPS) if op.name == "where")
        block = loops.emit_block([op], loops.group_of(op))
        for row in (".where_f32 = where_i32,", ".where_bf16 = where_i16,", ".where_u8 = where_i8,", ".where_truth = where_truth,"):
            self.assertIn(row, block)
        self.assertNotIn("where_f32_body", block)

    def test_a_comparison_has_a_bool_result(self):
        op, = read('[op]\nsummary = "s"\noperands = ["a", "b"]\nexpression = "a < b"\nresult = "compute"\n')
        with self.assertRaisesRegex(expression.ExpressionError, "disagree"):
            loops.emit_block([op], "family_0")


class QuickForms(unittest.TestCase):
    names = {"a": "v", "b": "v"}

    def test_stand_where_a_word_has_one(self):
        self.assertEqual(expression.compile_quick("sin(a)", self.names, "f16"),
                         ("eddy_sin_quick_f32(a)", "eddy_sin_is_quick_f32(a)"))

    def test_hold_where_all_of_them_do(self):
        code, condition = expression.compile_quick("cos(a) + floordiv(a, b)", self.names, "f32")
        self.assertEqual(code, "eddy_add_f32(eddy_cos_quick_f32(a), eddy_floordiv_quick_f32(a, b))")
        self.assertEqual(condition, "eddy_cos_is_quick_f32(a) && eddy_floordiv_is_quick_f32(a, b)")

    def test_are_missing_elsewhere(self):
        self.assertIsNone(expression.compile_quick("sin(a)", self.names, "f64"))
        self.assertIsNone(expression.compile_quick("log(a) + b", self.names, "f32"))


class TheList(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.entries = entry.read_all(OPS)
        cls.compositions = entry.read_compositions(OPS)

    def test_each_product_can_be_made_twice_alike(self):
        for kind in main.KINDS:
            again = main.produce(kind, entry.read_all(OPS), entry.read_compositions(OPS))
            self.assertEqual(main.produce(kind, self.entries, self.compositions), again, kind)
        again = main.sources(entry.read_all(OPS), entry.read_compositions(OPS))
        self.assertEqual(main.sources(self.entries, self.compositions), again)

    def test_a_new_op_changes_the_loops_of_its_group_alone(self):
        ops = [op for op in self.entries if op.name != "gelu"]
        before, after = main.sources(ops, self.compositions), main.sources(self.entries, self.compositions)
        blocks = [name for name in after if name.endswith("_block.c")]
        self.assertEqual([name for name in blocks if before[name] != after[name]],
                         [f"loops_{loops.group_of(next(op for op in self.entries if op.name == 'gelu'))}_block.c"])
        included = [name for name in after if re.fullmatch(r"(arguments|loops)_.*\d\.h", name) and before[name] != after[name]]
        self.assertEqual(len(included), 2)
        self.assertEqual(before["arguments.h"], after["arguments.h"])

    def test_a_scalar_form_is_in_the_group_of_its_op(self):
        for op in self.entries:
            if op.scalar_of:
                self.assertEqual(loops.group_of(op), loops.group_of(next(o for o in self.entries if o.name == op.scalar_of)))

    def test_the_pages_are_renewed(self):
        root = pathlib.Path(OPS[0]).parents[2]
        for kind, page in (("manual", "docs/ops.md"), ("pytorch", "docs/pytorch.md")):
            self.assertTrue((root / page).read_text() == main.produce(kind, self.entries, self.compositions), f"{page} is not what the generator "
                            f"makes; renew it with: python3 functional/generate/main.py {kind} {page} functional/ops/*.toml")

    def test_each_public_function_has_a_manual_page(self):
        with tempfile.TemporaryDirectory() as folder:
            ops = pathlib.Path(folder) / "ops.h"
            ops.write_text(header.emit(self.entries))
            headers = [*sorted(manual.HEADERS.glob("*.h")), ops]
            pages = pathlib.Path(folder) / "man3"
            man.write_all(pages, "0", headers)
            declared = {f"eddy_{name}" for path in headers for row in manual.declared(path.read_text()) for name in row[0]}
            self.assertEqual({page.stem for page in pages.iterdir()}, declared | {"eddy"})
            for page in pages.iterdir():
                text = page.read_text()
                leads = re.match(r"\.so man3/(\S+)$", text)
                self.assertTrue((pages / leads.group(1)).is_file() if leads else ".SH DESCRIPTION\n" in text, page.name)
            text = (pages / "eddy_sum.3").read_text()
            for part in ("eddy_sum \\- Sum over axes", "bool keeps_dims;", "eddy_tensor *eddy_sum(eddy_tensor *input", "OUT_OF_RANGE"):
                self.assertIn(part, text)

    def test_text_is_no_request(self):
        self.assertEqual(man.roff(".so x\na-b\\n"), "\\&.so x\na\\-b\\en")

    def test_ops_that_are_not_pytorchs_are_ops(self):
        self.assertLessEqual(set(names.OWN), {e.name for e in self.entries})

    def test_pytorchs_names_of_a_row_are_told_apart(self):
        for ours, row, name, shown in (("layer_norm", "layer_norm rms_norm", "layer_norm, rms_norm (normalized_shape)", "layer_norm"),
                                       ("min", "max min", "amax, amin", "amin"), ("sdpa", "sdpa", "scaled_dot_product_attention", "scaled_dot_product_attention"),
                                       ("sgd_momentum_step", "sgd_step sgd_momentum_step", "optim.SGD.step", "optim.SGD.step")):
            self.assertEqual(pytorch.theirs_of(ours, row.split(), name), shown)

    def test_names_that_differ_from_pytorchs_are_functions(self):
        functions = {f.name.removeprefix("eddy_") for e in self.entries for f in header.functions(e)}
        for path in manual.HEADERS.glob("*.h"):
            functions |= {name for row in manual.declared(path.read_text()) for name in row[0]}
        for _, ours, _ in names.NAMES:
            self.assertLessEqual(set(ours.split()), functions)

    def test_build_lists_are_complete(self):
        root = pathlib.Path(OPS[0]).parents[1]
        listed = (root / "ops/meson.build").read_text()
        for path in OPS:
            self.assertIn(f"'{pathlib.Path(path).name}'", listed)
        build = (root / "meson.build").read_text()
        counts = ast.literal_eval(re.search(r"foreach family, count : (\{.*\})", build)[1])
        named = sorted(f"{family}_{number}" for family, count in counts.items() for number in range(count))
        self.assertEqual(named, loops.groups(self.entries))
        modules = (root / "generate/meson.build").read_text()
        for path in (root / "generate").glob("*.py"):
            self.assertIn(f"'{path.name}'", modules)

    def test_every_shape_rule_is_declared(self):
        declared = (pathlib.Path(OPS[0]).parents[1] / "infer/infer.h").read_text()
        for op in self.entries:
            if op.infer:
                self.assertIn(f"eddy_infer_{op.infer}(", declared, op.name)

    def test_schema_and_symbols_name_the_functions_of_the_header(self):
        text = header.emit(self.entries)
        functions = symbols.emit(self.entries).split()
        self.assertEqual(len(functions), len(set(functions)))
        for name in functions:
            self.assertRegex(text, rf"EDDY_API [^;]*\b{name}\(")
        schemed = [f["name"] for op in json.loads(schema.emit(self.entries))["ops"] for f in op["functions"]]
        self.assertEqual(schemed, functions)

    def test_every_function_is_documented(self):
        text = header.emit(self.entries)
        for line, before in zip(text.splitlines()[1:], text.splitlines()):
            if line.startswith("EDDY_API"):
                self.assertTrue(before.endswith("*/"), line)

    def test_option_structs_begin_with_their_size(self):
        for op in self.entries:
            if op.options:
                self.assertIn("{\n    size_t size;", header.options_struct(op))

    def test_lines_are_not_too_long(self):
        for line in header.emit(self.entries).splitlines():
            if line.startswith((" *", "/*")):
                self.assertLessEqual(len(line), 120, line)

    def test_scalar_forms_promote_by_their_right_side(self):
        forms = {op.name: op for op in self.entries}
        self.assertEqual([a.type for a in forms["add_s"].attributes], ["scalar"])
        self.assertEqual(forms["add_s"].scalar_of, "add")
        self.assertNotIn("b", forms["mul_s"].gradient)


class Errors(unittest.TestCase):
    def text(self, extra):
        return errors.text(read(operation(extra))[0])

    def test_what_follows_from_the_form_comes_before_what_is_said(self):
        self.assertEqual(self.text('errors = { SHAPE_MISMATCH = ["a", "b"] }\nlate_errors = { OUT_OF_RANGE = "c" }\n'),
                         "SHAPE_MISMATCH (a; b); late: OUT_OF_RANGE (c)")
        self.assertEqual(self.text('dtypes = "float"\nerrors = { DTYPE_MISMATCH = "a" }\n'),
                         "DTYPE_MISMATCH (the operands are no floats; a)")
        self.assertEqual(self.text('struct = "s"\nattributes = [{ name = "i", type = "axis", doc = "d" }]\n'),
                         "OUT_OF_RANGE (i is not one of the operand's)")
        self.assertEqual(self.text(""), "")

    def test_an_elementwise_op_takes_what_promotes(self):
        op, = read('[op]\nsummary = "s"\noperands = ["x"]\nexpression = "-x"\ndtypes = "number"\npromotion = "same"\n')
        self.assertEqual(errors.text(op), "UNSUPPORTED (the operands promote to bool)")
        op, = read('[op]\nsummary = "s"\noperands = ["x"]\nexpression = "-x"\ndtypes = "float"\npromotion = "float"\n')
        self.assertEqual(errors.text(op), "")

    def test_quotes_reach_the_rows_of_the_test(self):
        self.assertIn('ERROR(op, OUT_OF_RANGE, true, "no \\"a\\"")', errors.emit(read(operation("late_errors = { OUT_OF_RANGE = 'no \"a\"' }\n"))))


class Compositions(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "composition.toml"
            path.write_text(text)
            self.assertEqual(entry.read_all([str(path)]), [])
            return entry.read_compositions([str(path)])

    def test_outputs_are_counted_by_a_list_or_a_number(self):
        text = ('[parts]\nsummary = "s"\noperands = ["x", { name = "l", kind = "list" }]\noutput_count = "COUNT"\n'
                'attributes = [{ name = "n", type = "int", doc = "d" }, { name = "t", type = "text", doc = "d" }]\n')
        for count in ("l", "n"):
            described = json.loads(schema.emit([], self.read(text.replace("COUNT", count))))["compositions"]
            self.assertEqual([c["output_count"] for c in described], [count])
        for count in ("x", "t"):
            with self.assertRaisesRegex(entry.EntryError, "neither a list nor a number"):
                self.read(text.replace("COUNT", count))

    def test_a_composition_has_no_kernel_and_no_form(self):
        for key in ('kernel = "k"', 'forms = ["into"]', 'gradient = "none"'):
            with self.assertRaisesRegex(entry.EntryError, "unknown key"):
                self.read(f'[f]\nsummary = "s"\noperands = ["x"]\n{key}\n')


class Manual(unittest.TestCase):
    def test_functions_are_found_in_headers(self):
        text = ("/* The header. */\n#define A 1\nEDDY_API int eddy_a(void);\n/* ---- more ---- */\n/* Does b[.., 1] .. it. then more. */\n"
                "EDDY_API int eddy_b(int x,\n    int y);\nEDDY_API int eddy_c(void);\n")
        self.assertEqual(manual.declared(text), [(["a"], ""), (["b", "c"], "Does b[.., 1] .. it.")])

    def test_a_row_tells_forms_and_gradient(self):
        text = ('[op]\nsummary = "|x|. More."\noperands = ["x", "y"]\nexpression = "x * y"\npromotion = "float"\ndtypes = "float"\nulp = 2\n'
                'forms = ["scalar", "into"]\ngradient = { y = "grad * x" }\n')
        self.assertEqual(manual.family(read(text), "family")[4],
                         "| `op` | \\|x\\|. | floats; others become f32 | `_s` `_into` | y | 2 |  |")


class Gradients(unittest.TestCase):
    def formula(self, text, extra=""):
        op = read(operation(f'gradient = {{ x = "{text}" }}\n{extra}'))[0]
        return gradient.Formula(op, text, {e.name: e for e in entry.read_all(OPS)})

    def test_what_it_reads_by_value_is_saved_and_nothing_else(self):
        self.assertEqual(self.formula("grad").inputs, set())
        self.assertEqual(self.formula("grad * x").inputs, {0})
        self.assertEqual(self.formula("grad * output").outputs, {0})
        by_shape = self.formula("grad / count(x) + zeros_like(x)")
        self.assertEqual((by_shape.inputs, by_shape.outputs), (set(), set()))

    def test_operands_may_be_left_out_or_asked_for_by_name(self):
        self.assertIn("eddy_linear(call->grads[0], call->inputs[0], EDDY_NONE)", self.formula("linear(grad, x, none)").code)
        named = self.formula("grad * operand(x)")
        self.assertEqual((named.code, named.inputs), ("eddy_mul(call->grads[0], call->inputs[0])", {0}))
        self.assertIn("eddy_count_of(call->grads[0])", self.formula("grad / count(grad)").code)
        with self.assertRaisesRegex(entry.EntryError, "operand that there is not"):
            self.formula("operand(y)")

    def test_numbers_go_to_the_right(self):
        self.assertEqual(self.formula("grad * 2").code, "eddy_mul_s(call->grads[0], EDDY_S(2))")
        self.assertEqual(self.formula("1 - x").code, "eddy_sub(eddy_gradient_constant(call, (double)1), call->inputs[0])")

    def test_options_are_given_by_name(self):
        self.assertIn(".keeps_dims = true", self.formula("sum(grad, [0], keeps_dims=True)").code)

    def test_what_does_not_exist_is_refused(self):
        for text, word in (("grad * y", "names 'y'"), ("nonsense(grad)", "no op"), ("grad *", "no expression"),
                           ("sum(grad)", "arguments"), ("sum(grad, [0], keep=True)", "unknown option")):
            with self.assertRaisesRegex(entry.EntryError, word):
                self.formula(text)

    def test_functions_in_c_come_after_formulas(self):
        text = operation('gradient = { x = "c:f(x)", y = "grad" }\n').replace('["x"]', '["x", "y"]')
        written = gradient.emit(read(text))
        self.assertLess(written.index("call->results[1] ="), written.index("return eddy_gradient_f(call);"))
        self.assertIn("[0] = {.is_differentiable = true, .inputs = 0x1, .outputs = 0x0}", written)
        with self.assertRaisesRegex(entry.EntryError, "unknown 'z'"):
            gradient.emit(read(operation('gradient = { x = "c:f(z)" }\n')))


if __name__ == "__main__":
    unittest.main()
