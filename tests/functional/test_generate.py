"""The generator of the op list: what it refuses, and what it writes."""

import ast
import json
import pathlib
import re
import tempfile
import unittest

import bench
import calls
import chains
import declarations
import entry
import errors
import expression
import fused
import gradient
import header
import loops
import main
import man
import manual
import names
import pytorch
import reductions
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
    return '[op]\nsummary = "Does."\noperands = ["x"]\ninfer = "same"\nkernel = "copy"\nexample = "f32[2]"\n' + extra


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
                             '{ name = "b", type = "shape", passed_as = "axes", doc = "d" }, { name = "c", type = "shape", doc = "d" }]\n'))
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
        self.refused('[op]\nsummary = "s"\noperands = [{ name = "l", kind = "list" }, "x"]\nlayout = "x"\ninfer = "i"\nkernel = "k"\nexample = ""\n',
                     "layout names a tensor")
        self.refused(option('type = "bool"') + 'last_where = "o"\n', "last_where names a bool option")
        self.refused(option('type = "int"') + 'layout = "x"\nlast_where = "o"\n', "last_where names a bool option")
        self.refused(operation('attributes = [{ name = "a", type = "complex", doc = "d" }]\n'), "unknown type")

    def test_entries_that_are_not_whole(self):
        self.refused('[op]\noperands = ["x"]\ninfer = "same"\nkernel = "copy"\nexample = ""\n', "no summary")
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
        self.refused(operation('errors.SHAPE_MISMATCH = "when"\n'), "is a table")
        self.refused(operation('errors.SHAPE."when" = { "f32[]" = "part" }\n'), "unknown status")
        self.refused(operation('late_errors.OUT_OF_RANGE."A sentence." = { "f32[]" = "part" }\n'), "no clause")

    def test_each_cause_of_an_error_has_a_call_that_provokes_it(self):
        for made in ('{}', '""', '{ "f32[]" = "" }'):
            self.refused(operation(f'errors.SHAPE_MISMATCH."when" = {made}\n'), r"family.toml \[op\]: errors: nothing provokes 'when'")

    def test_each_op_that_is_not_elementwise_has_an_example(self):
        self.refused(operation("").replace('example = "f32[2]"\n', ""), r"family.toml \[op\]: no example")
        op, = read('[op]\nsummary = "s"\noperands = ["x"]\nexpression = "-x"\n')
        self.assertEqual(calls.emit_examples([op]).count("CALL("), 0)
        several = operation("").replace('"f32[2]"', '["f32[2]", "f32[]"]')
        self.assertEqual(calls.emit_examples(read(several)).splitlines()[2:], ['CALL(op, "f32[2]", "")', 'CALL(op, "f32[]", "")'])
        self.refused(several.replace("f32[]", "f32"), "no operand")

    def test_calls_are_operands_and_attributes_of_the_op(self):
        for call, word in (("f32", "'f32' is no operand"), ("f32[2] a=1", "'a=1' is no attribute"), ("f32[2] o=1 none", "'none' is no attribute"),
                           ("f32[2]  o=1", "spaces too many")):
            self.refused(option('type = "int"') + f'errors.OUT_OF_RANGE."when" = {{ "{call}" = "part" }}\n', word)
            self.refused(option('type = "int"').replace('"f32[2]"', f'"{call}"'), word)

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

    def test_operators_are_functions_of_the_compute_type(self):
        self.assertEqual(self.compiled("a + b * 2")[0], "eddy_add_f32(a, eddy_mul_f32(b, 0x1.0000000000000p+1f))")
        self.assertEqual(self.compiled("a - 1", "i8")[0], "eddy_sub_i8(a, 1)")
        self.assertEqual(self.compiled("-a", "bf16")[0], "eddy_neg_f32(a)")
        self.assertEqual(self.compiled("a < b", "bool")[:2], ("eddy_lt_truth(a, b)", "c"))

    def test_the_vocabulary_is_closed(self):
        self.refused("gamma(a)", "no function of the vocabulary")
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
        op, = read(text.replace("DTYPES", '["f32", "f16"]'))
        block = loops.emit_block([op], "family_0")
        self.assertIn("half = {.loop = op_f32, .input_count = 2, .has_bool_result = true};", block)
        self.assertIn(".run_f16(&half, data", block)
        self.assertNotIn("op_f16_body", block)
        with self.assertRaisesRegex(expression.ExpressionError, "goes through f32"):
            loops.emit_block(read(text.replace("DTYPES", '["f16"]')), "family_0")

    def test_cheap_loops_of_bf16_convert_what_is_contiguous_themselves(self):
        for word, is_direct in (("add", True), ("div", False), ("max", False)):
            op, = read('[op]\nsummary = "s"\noperands = ["a", "b"]\nresult = "compute"\ndtypes = ["f32", "bf16"]\ncost = "cheap"\n'
                       f'expression = "{word}(a, b)"\n')
            block = loops.emit_block([op], "family_0")
            self.assertEqual("op_bf16_body(data, whole, 2, 2, 2);" in block, is_direct, word)
            self.assertIn(".run_bf16(&half, " + ("rest, strides, count - whole" if is_direct else "data, strides, count"), block)

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


class Chains(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ops = {e.name: e for e in entry.read_all(OPS)}

    def read(self, text):
        return chains.read_chain("name", text, self.ops)

    def test_the_innermost_call_comes_first(self):
        chain = self.read("mul_s(add(y, sub_s(x)))")
        self.assertEqual([(e.name, taken) for e, taken in chain.chain], [("sub_s", None), ("add", 1), ("mul_s", 0)])
        self.assertEqual([o.name for o in chain.operands], ["x", "y"])
        self.assertEqual(chain.expressions, ["(y + (x - first_number)) * second_number"])

    def test_it_costs_what_its_dearest_op_costs(self):
        self.assertEqual(self.read("sigmoid(add(x, y))").cost, self.ops["sigmoid"].cost)

    def test_what_is_no_chain_is_refused(self):
        for text, word in (("x", "no call"), ("relu(x)", "2 to 3"), ("abs(relu(abs(relu(x))))", "2 to 3"), ("add(mul(x, x), y)", "occurs once"),
                           ("add(mul(x, y), mul(z, w))", "two calls"), ("relu(nothing(x))", "no elementwise op"), ("relu(matmul(x, y))", "no elementwise op"),
                           ("relu(add(x))", "takes 2 operands"), ("relu(pow_s(x))", "shortcuts"), ("relu(leaky_relu(x))", "has attributes"),
                           ("relu(lt(x, y))", "no elementwise op"), ("relu(where(x, y, z))", "takes a bool"), ("add_s(mul_s(sub_s(x)))", "more than 2 numbers"),
                           ("add(mul(add(x, y), z), w)", "operands"), ("relu(x + y)", "no name")):
            with self.assertRaisesRegex(entry.EntryError, word, msg=text):
                self.read(text)

    def test_an_operand_may_be_one_number(self):
        for text, has_form in (("exp(sub(x, one))", True), ("exp(sub(x, y))", False)):
            lines = "\n".join(loops.loop(self.read(text), "f32"))
            self.assertEqual("name_f32_chunks(data, count, 4, 0, 4, attributes)" in lines, has_form, text)
            self.assertEqual("name_f32_full_body(data, count, 4, 0, 4)" in lines, has_form, text)

    def test_a_name_is_not_that_of_an_op(self):
        with self.assertRaisesRegex(entry.EntryError, "there is an op"):
            chains.read_chain("relu", "relu(add(x, y))", self.ops)


class TheList(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.entries = entry.read_all(OPS)
        cls.compositions = entry.read_compositions(OPS)
        cls.chains = chains.read(OPS, cls.entries)

    def test_each_product_can_be_made_twice_alike(self):
        for kind in main.KINDS:
            again = main.produce(kind, entry.read_all(OPS), entry.read_compositions(OPS))
            self.assertEqual(main.produce(kind, self.entries, self.compositions), again, kind)
        again = main.sources(entry.read_all(OPS), entry.read_compositions(OPS), chains.read(OPS, entry.read_all(OPS)))
        self.assertEqual(main.sources(self.entries, self.compositions, self.chains), again)

    def test_a_new_op_changes_the_loops_of_its_group_alone(self):
        ops = [op for op in self.entries if op.name != "gelu"]
        before, after = (main.sources(entries, self.compositions, self.chains) for entries in (ops, self.entries))
        blocks = [name for name in after if name.endswith("_block.c")]
        self.assertEqual([name for name in blocks if before[name] != after[name]],
                         [f"loops_{loops.group_of(next(op for op in self.entries if op.name == 'gelu'))}_block.c"])
        included = [name for name in after if re.fullmatch(r"(arguments|loops)_.*\d\.h", name) and before[name] != after[name]]
        self.assertEqual(len(included), 2)
        self.assertEqual(before["arguments.h"], after["arguments.h"])

    def test_elementwise_ops_are_compared_with_the_oracle_that_they_name_or_their_own(self):
        rows = loops.emit_oracles(self.entries).splitlines()
        for row in ("ROW(exp, exp)", "ROW(add_s, add)", "ROW(prelu_broadcast, leaky_relu)"):
            self.assertIn(row, rows)
        self.assertEqual(sum(row.startswith("ROW(") for row in rows), sum(op.is_elementwise for op in self.entries))

    def test_reductions_over_axes_are_compared_with_oracles_too(self):
        rows = reductions.emit(self.entries).splitlines()[2:]
        self.assertEqual(rows, [f"REDUCTION({op.name}, {op.oracle})" for op in self.entries
                                if op.struct in ("reduce", "var", "norm") and "axes" in [a.name for a in op.parameters]])
        self.assertIn("REDUCTION(logsumexp, logsumexp)", rows)

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
        self.assertEqual(named, loops.groups(self.entries + fused.of(self.entries) + self.chains))
        modules = (root / "generate/meson.build").read_text()
        for path in (root / "generate").glob("*.py"):
            self.assertIn(f"'{path.name}'", modules)

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
        provoked = '{ "f32[]" = "part" }\n'
        self.assertEqual(self.text(f'errors.SHAPE_MISMATCH.a = {provoked}errors.SHAPE_MISMATCH.b = {provoked}late_errors.OUT_OF_RANGE.c = {provoked}'),
                         "SHAPE_MISMATCH (a; b); late: OUT_OF_RANGE (c)")
        self.assertEqual(self.text(f'dtypes = "float"\nerrors.DTYPE_MISMATCH.a = {provoked}'),
                         "DTYPE_MISMATCH (the operands are no floats; a)")
        self.assertEqual(self.text('struct = "s"\nattributes = [{ name = "i", type = "axis", doc = "d" }]\n'),
                         "OUT_OF_RANGE (i is not one of the operand's)")
        self.assertEqual(self.text(""), "")

    def test_an_elementwise_op_takes_what_promotes(self):
        op, = read('[op]\nsummary = "s"\noperands = ["x"]\nexpression = "-x"\ndtypes = "number"\npromotion = "same"\n')
        self.assertEqual(errors.text(op), "UNSUPPORTED (the operands promote to bool)")
        op, = read('[op]\nsummary = "s"\noperands = ["x"]\nexpression = "-x"\ndtypes = "float"\npromotion = "float"\n')
        self.assertEqual(errors.text(op), "")

    def test_each_call_is_a_row_of_the_test(self):
        text = ('errors.SHAPE_MISMATCH."when" = { "f32[2] f32[3]=7" = "no \\"a\\"", "" = "part" }\n'
                'late_errors.OUT_OF_RANGE."when" = { "i64[2]=-1,4 o=[1,2]" = "i" }\n')
        self.assertEqual(calls.emit_refusals(read(option('type = "pair"') + text)).splitlines()[2:],
                         ['REFUSED(op, SHAPE_MISMATCH, "f32[2] f32[3]=7", "", "no \\"a\\"")', 'REFUSED(op, SHAPE_MISMATCH, "", "", "part")',
                          'LATE(op, OUT_OF_RANGE, "i64[2]=-1,4", "o=[1,2]", "i")'])


class Declarations(unittest.TestCase):
    text = ('[one]\nsummary = "s"\noperands = [{ name = "l", kind = "list", access = "mut" }, { name = "o", kind = "optional" }]\n'
            'outputs = ["a", "b"]\ninfer = "r"\nkernel = "k"\nexample = ""\ngradient = { o = "c:back(o)" }\ngradient_cases = ["[2]"]\n'
            '[two]\nsummary = "s"\noperands = ["x", { name = "like", spec_only = true }]\ninfer = "r"\nkernel = "k"\nexample = ""\n')

    def test_a_kernel_is_declared_once_with_what_each_op_gives_it(self):
        text = declarations.emit_kernels(read(self.text))
        self.assertIn("/* one [l .. (written), o or none -> a, b]; two [x -> output]. */\nextern const eddy_kernel eddy_cpu_k;", text)
        self.assertEqual(text.count("extern"), 1)

    def test_rules_and_gradients_in_c_are_declared_once(self):
        self.assertEqual(declarations.emit_infer(read(self.text)).count("eddy_status eddy_infer_r(eddy_infer *infer);"), 1)
        self.assertIn("eddy_gradient_fn eddy_gradient_back;", declarations.emit_gradients(read(self.text)))

    def test_what_is_elementwise_declares_nothing(self):
        self.assertNotIn("eddy_cpu_", declarations.emit_kernels(read('[op]\nsummary = "s"\noperands = ["x"]\nexpression = "-x"\n')))


class Bench(unittest.TestCase):
    scaled = '[op]\nsummary = "s"\noperands = ["a", "b"]\nexpression = "a * b"\nforms = ["scalar"]\n'
    reduced = operation('struct = "s"\nattributes = [{ name = "axes", type = "axes", doc = "d" }]\n'
                        'options = [{ name = "keeps_dims", type = "bool", doc = "d" }]\n')

    def rows(self, text, told):
        return re.findall(r"^    (op\(.*\))(?: \\)?$", bench.emit(read(text + f"bench = {told}\n")), re.MULTILINE)

    def test_operands_that_both_calls_take_are_a_row(self):
        self.assertEqual(self.rows(self.scaled, '"x, y"'), ["op(op, 12, eddy_op(x, y), torch::op(x, y))"])
        self.assertEqual(self.rows(operation(""), '{ of = "m", bytes = 8 }'), ["op(op, 8, eddy_op(m), torch::op(m))"])
        self.assertEqual(self.rows(self.scaled, "[]"), [])

    def test_a_row_that_differs_says_in_what(self):
        self.assertEqual(self.rows(self.scaled, '["x, y", { name = "op_s", of = "x, 2.0" }, { name = "op_row", of = "m, row", bytes = 8 }]')[1:],
                         ["op(op_s, 8, eddy_op_s(x, EDDY_S(2.0)), torch::op(x, 2.0))", "op(op_row, 8, eddy_op(m, row), torch::op(m, row))"])
        self.assertEqual(self.rows(self.scaled, '{ of = "x, y", torch = "times" }'), ["op(op, 12, eddy_op(x, y), torch::times(x, y))"])
        self.assertEqual(self.rows(operation(""), '{ bytes = 4, call = "f({1, 2})", torch = "x.f()" }'), ["op(op, 4, f({1, 2}), x.f())"])

    def test_what_may_be_left_out_is_filled_in(self):
        self.assertEqual(self.rows(self.reduced, '["x", { name = "op_rows", of = "b, 1" }]'),
                         ["op(op, 4, eddy_op(x, EDDY_ALL_AXES, NULL), torch::op(x))",
                          "op(op_rows, 1, eddy_op(b, EDDY_AXES(1), NULL), torch::op(b, 1))"])
        two = operation('outputs = ["one", "other"]\n').replace('"x"', '"x", { name = "y", kind = "optional" }')
        self.assertEqual(self.rows(two, '{ of = "x", bytes = 8 }'), ["op(op, 8, first_of(eddy_op(x, EDDY_NONE, &first, &second)), torch::op(x))"])

    def test_elementwise_ops_and_reductions_are_named_once_more(self):
        told = 'bench = ["x, y", { name = "op_s", of = "x, 2.0" }]\n'
        for text, names in ((self.scaled + told, ["op", "op_s"]), (self.reduced + 'bench = "x"\n', ["op"]),
                            (operation('bench = { of = "x", bytes = 8 }\n'), [])):
            self.assertEqual(re.findall(r"\bname\((\w+)\)", bench.emit(read(text))), names)

    def test_conditions_and_truths_have_a_byte(self):
        compared = self.scaled.replace("a * b", "a < b").replace('forms = ["scalar"]', 'result = "bool"')
        self.assertEqual(self.rows(compared, '"x, y"'), ["op(op, 9, eddy_op(x, y), torch::op(x, y))"])
        self.assertEqual(self.rows(self.scaled, '"b, c"'), ["op(op, 3, eddy_op(b, c), torch::op(b, c))"])

    def test_what_does_not_follow_has_to_be_told(self):
        for text, told, word in ((operation(""), '"x"', "no `bytes`"), (self.scaled, '"x"', "write the `call`"),
                                 (self.scaled, '"x, y, z"', "write the `call`"), (self.scaled, '{ call = "f(x)", bytes = 1 }', "`call` and `torch`"),
                                 (self.scaled, '{ of = "x, y", call = "f(x)", torch = "g" }', "`call` and `torch`"),
                                 (self.scaled, '{ size = 4 }', "unknown key"), (self.scaled, '""', "says `of`")):
            with self.assertRaisesRegex(entry.EntryError, word):
                self.rows(text, told)


class FusedGradients(unittest.TestCase):
    list = entry.read_all(OPS)

    def fused(self, formula, more=""):
        op, = read('[op]\nsummary = "s"\noperands = ["x", "y"]\nexpression = "x * y * a"\ndtypes = "float"\n'
                   'options = [{ name = "a", type = "float", doc = "d" }]\n'
                   f'gradient = {{ x = "{formula}" }}\ngradient_cases = ["[2] [2]"]\n{more}')
        return fused.fuse(op, "x", {e.name: e for e in self.list} | {"op": op})

    def test_several_ops_become_one_loop_with_the_op_s_attributes(self):
        op = self.fused("grad * (output + a) * 2")
        self.assertEqual(([o.name for o in op.operands], op.dtypes, op.arguments), (["grad", "output"], entry.FLOATS, "eddy_arguments_op"))
        self.assertIn("eddy_mul_f32(eddy_mul_f32(grad, eddy_add_f32(output, a)), 0x1.0000000000000p+1f)",
                      "\n".join(loops.loop(op, "f32")))

    def test_elementwise_ops_are_put_in_their_place(self):
        self.assertEqual(self.fused("grad * sign(y)").expressions, ["grad * select(y > 0, 1, select(y < 0, -1, 0))"])
        self.assertEqual(self.fused("relu_backward(grad, y) + 1").expressions, ["select(y <= 0, 0, grad) + 1"])

    def stages(self, formula):
        return [f"{s.writes} = {s.op.name if s.op else s.expression} {' '.join(s.reads)}" for s in self.fused(formula).stages]

    def test_long_words_are_stages_that_run_the_loops_of_ops(self):
        self.assertEqual(self.stages("grad * cos(y)"), ["buffer_0 = cos y", "out = mul grad buffer_0"])
        self.assertEqual(self.stages("grad * pow(x, y - (y != 0))"), [
            "buffer_0 = y - select(y != 0, 1, 0) y", "buffer_0 = pow x buffer_0", "out = mul grad buffer_0"])
        self.assertEqual(self.stages("grad * sigmoid(y) * (1 - sigmoid(y))"), [
            "buffer_0 = sigmoid y", "out = grad * buffer_0 * (1 - buffer_0) grad buffer_0"])
        self.assertEqual(self.stages("grad * max(x, y) / 2"), ["buffer_0 = maximum x y", "out = grad * buffer_0 / 2 grad buffer_0"])
        self.assertEqual(self.fused("grad * cos(y)").cost, "heavy")

    def test_a_stage_may_take_a_number_that_is_computed(self):
        text = "\n".join(loops.loop(self.fused("grad * pow(x, a - 1)"), "f32"))
        self.assertIn("const eddy_arguments_pow_s own = {eddy_scalar_float((double)((double)arguments->a - (double)1))};", text)
        self.assertIn(".pow_s_f32(data, strides, count, &own);", text)

    def test_what_stays_op_by_op(self):
        for formula in ("grad * y", "c:f(x)", "grad * y * (a + 1)", "y * y", "sum(grad * y, [0]) * y", "grad * pow(x + 1, y + 1)",
                        "grad * gelu(y)", "grad * (sin(x) + sin(y) + cos(x))"):
            self.assertIsNone(self.fused(formula), formula)

    def test_a_gradient_goes_op_by_op_where_it_is_recorded(self):
        op, = [e for e in self.list if e.name == "log1p"]
        text = "\n".join(gradient.entry_lines(op, {e.name: e for e in self.list}, {e.name: e for e in fused.of(self.list)}))
        self.assertIn("if (eddy_gradient_is_fused(call, 0x1, 0x0))\n            call->results[0] = eddy_gradient_fused(call, "
                      "&eddy_op_log1p_gradient_x, (eddy_tensor *[]){call->grads[0], call->inputs[0]});\n        else\n", text)

    def test_they_are_no_functions(self):
        self.assertNotIn("_gradient_", main.produce("symbols", self.list) + main.produce("schema", self.list))


class GradientCases(unittest.TestCase):
    def test_each_gradient_has_one(self):
        with self.assertRaisesRegex(entry.EntryError, r"family.toml \[op\]: no gradient case"):
            read(operation('gradient = { x = "grad" }\n'))
        self.assertEqual(read(operation('gradient = "none"\n'))[0].gradient_cases, [])

    def scaled(self, cases):
        return read('[op]\nsummary = "s"\noperands = ["x", "y"]\nexpression = "x * y"\nforms = ["scalar"]\n'
                    f'gradient = {{ x = "grad * y", y = "grad * x" }}\ngradient_cases = {cases}\n')

    def test_those_that_give_the_right_side_as_a_number_are_of_the_scalar_form(self):
        op, form = self.scaled('["[2] #0", "0.5..2 [2] y=3"]')
        self.assertEqual((op.gradient_cases, form.gradient_cases), (["[2] #0"], ["0.5..2 [2] y=3"]))
        self.assertIn('GRADIENT(op_s, "0.5..2 [2]", "y=3")', calls.emit_gradients([op, form]))
        with self.assertRaisesRegex(entry.EntryError, "no gradient case of op_s"):
            self.scaled('["[2] [2]"]')

    def test_their_operands_are_variables_or_constants(self):
        self.scaled('["-2..-0.5 [2,3]=1,2.5,-3,0,0,0 f64[3]=-inf,1,2", "[] y=1"]')
        for case, word in (("f64 [2]", "'f64' is no operand"), ("[2] [2] z=1", "'z=1' is no attribute"), ("1..x [2] [2]", "no operand")):
            with self.assertRaisesRegex(entry.EntryError, word):
                self.scaled(f'["{case}", "[2] y=1"]')


class Compositions(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "composition.toml"
            path.write_text(text)
            self.assertEqual(entry.read_all([str(path)]), [])
            return entry.read_compositions([str(path)])

    def test_outputs_are_counted_by_a_list_or_a_number(self):
        text = ('[parts]\nsummary = "s"\nexample = ""\noperands = ["x", { name = "l", kind = "list" }]\noutput_count = "COUNT"\n'
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
                'forms = ["scalar", "into"]\ngradient = { y = "grad * x" }\ngradient_cases = ["[2] [2]", "[2] y=1"]\n')
        self.assertEqual(manual.family(read(text), "family")[4],
                         "| `op` | \\|x\\|. | floats; others become f32 | `_s` `_into` | y | 2 |  |")


class Gradients(unittest.TestCase):
    def formula(self, text, extra=""):
        op = read(operation(f'gradient = {{ x = "{text}" }}\ngradient_cases = ["[2]"]\n{extra}'))[0]
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

    def test_words_of_expressions_are_ops(self):
        self.assertEqual(self.formula("select(x > 0 and not x < 1, grad, 0)").code,
                         "eddy_where(eddy_logical_and(eddy_gt_s(call->inputs[0], EDDY_S(0)), eddy_logical_not(eddy_lt_s(call->inputs[0], "
                         "EDDY_S(1)))), call->grads[0], eddy_gradient_constant(call, (double)0))")
        self.assertEqual(self.formula("min(grad, x)").code, "eddy_minimum(call->grads[0], call->inputs[0])")

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
        text = operation('gradient = { x = "c:f(x)", y = "grad" }\ngradient_cases = ["[2]"]\n').replace('["x"]', '["x", "y"]')
        written = gradient.emit(read(text))
        self.assertLess(written.index("call->results[1] ="), written.index("return eddy_gradient_f(call);"))
        self.assertIn("[0] = {.is_differentiable = true, .inputs = 0x1, .outputs = 0x0}", written)
        with self.assertRaisesRegex(entry.EntryError, "unknown 'z'"):
            gradient.emit(read(operation('gradient = { x = "c:f(z)" }\ngradient_cases = ["[2]"]\n')))


if __name__ == "__main__":
    unittest.main()
