"""A kernel of PTX, as a function of C++ (translate.py)."""

import re

INTEGERS = {"8": "int8_t", "16": "int16_t", "32": "int32_t", "64": "int64_t"}
REALS = {"f32": "float", "f64": "double"}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
ROUNDED = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
SPECIAL = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
# What a block has of memory (machine.h).
SHARED_BYTES = 48 << 10


def cpp(kind):
    """The C++ type of a type of PTX."""
    if kind in REALS:
        return REALS[kind]
    if kind == "pred":
        return "bool"
    return INTEGERS[kind[1:]] if kind[0] == "s" else "u" + INTEGERS[kind[1:]]


class Unknown(Exception):
    """What the translation does not know."""


def bits_of(kind):
    if not re.fullmatch(r"[a-z]\d+", kind):
        raise Unknown(f"type {kind}")
    return int(kind[1:])


def label(text):
    return text.strip().replace("$", "")


class Kernel:
    """One kernel: its registers, its symbols, its statements."""

    def __init__(self, name, globals_):
        self.name, self.globals = name, globals_
        self.kinds = {}
        self.shared, self.shared_bytes = {}, 0
        self.meets = False
        self.parameters = {}
        self.lines = []

    # ---- operands ----

    def declare(self, kind, names):
        """Registers: `%r<5>` are %r0 to %r4."""
        for name in names.split(","):
            many = re.fullmatch(r"\s*(%[\w$]+)<(\d+)>\s*", name)
            listed = [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [name.strip()]
            for register in listed:
                self.kinds[register] = kind
            if listed:
                self.lines.append(f"{cpp(kind)} {', '.join(r.replace('%', 'v_') for r in listed)};")

    def declare_shared(self, align, name, size):
        """A variable of the block, if `size` is None what the launch asks for."""
        if size is None:
            self.shared[name] = "PTX_SHARED_OF_LAUNCH"
            return
        start = -(-self.shared_bytes // align) * align
        self.shared[name], self.shared_bytes = f"{start}u", start + size
        if self.shared_bytes > SHARED_BYTES:
            raise Unknown(f"{self.name} declares more than {SHARED_BYTES} bytes of shared memory")

    def symbol(self, name):
        """An address."""
        if name in self.parameters:
            return "(uint64_t)parameters"
        if name in self.shared:
            return self.shared[name]
        if name in self.globals:
            return f"(uint64_t){name}"
        return None

    def read(self, text, kind):
        """An operand as a value of that kind."""
        text = text.strip()
        want = cpp(kind)
        if text in self.kinds:
            register, own = text.replace("%", "v_"), self.kinds[text]
            if own == kind:
                return register
            if own in REALS or kind in REALS:
                if bits_of(own) != bits_of(kind):
                    raise Unknown(f"{text} as {kind}")
                return f"ptx_bits<{want}>({register})"
            return f"({want}){register}"
        special = re.fullmatch(r"%(\w+)\.([xyz])", text)
        if special and special[1] in SPECIAL:
            return f"{SPECIAL[special[1]]}.{special[2]}"
        if text == "%laneid":
            self.meets = True
            return "eddy_grid_lane()"
        if re.fullmatch(r"0f[0-9A-Fa-f]{8}", text):
            return f"ptx_bits<float>(0x{text[2:]}u)"
        if re.fullmatch(r"0d[0-9A-Fa-f]{16}", text):
            return f"ptx_bits<double>(UINT64_C(0x{text[2:]}))"
        if re.fullmatch(r"-?\d+", text) and kind not in REALS:
            return text if kind == "pred" else f"({want})INT64_C({text})" if -2**63 < int(text) < 2**63 else f"({want})({int(text) % 2**64}u)"
        address = self.symbol(text)
        if address:
            return f"({want}){address}"
        raise Unknown(f"operand {text}")

    def write(self, text, kind, value):
        """A statement that gives a register a value of that kind."""
        text = text.strip()
        own, register = self.kinds[text], text.replace("%", "v_")
        if own == kind:
            return f"{register} = {value};"
        if own in REALS or kind in REALS:
            if bits_of(own) != bits_of(kind):
                raise Unknown(f"{text} of {kind}")
            return f"{register} = ptx_bits<{cpp(own)}>(({cpp(kind)})({value}));"
        # A signed value fills a longer register by its sign.
        return f"{register} = ({cpp(own)})({cpp(kind)})({value});"

    def address(self, text):
        """`[symbol+offset]`, without brackets."""
        parts = re.fullmatch(r"\s*([%\w$.]+)\s*(?:\+\s*(-?\d+))?\s*", text)
        if not parts:
            raise Unknown(f"address {text}")
        base = self.read(parts[1], "u64") if parts[1] in self.kinds else self.symbol(parts[1])
        if base is None:
            raise Unknown(f"address {text}")
        return f"{base} + (uint64_t)INT64_C({parts[2] or 0})"

    # ---- instructions ----

    def memory(self, space, kind, address, count, access):
        """A pointer to elements of that kind, which are read, written, or changed at once."""
        name = f"\"{self.name}\""
        if space == "shared":
            return f"ptx_at_shared<{cpp(kind)}>({name}, {{SHARED}}, (uint32_t)({address}), {count}, PTX_{access})"
        if space == "local":
            return f"ptx_at_local<{cpp(kind)}>({name}, {address}, {count})"
        return f"ptx_at<{cpp(kind)}>({name}, {address}, {count}, PTX_{access})"

    def load(self, parts, arguments):
        modifiers, kind = parts[1:-1], parts[-1]
        space = next((m for m in modifiers if m in ("global", "shared", "local", "param")), "generic")
        if set(modifiers) - {"global", "shared", "local", "param", "nc", "volatile", "v2", "v4"}:
            raise Unknown(".".join(parts))
        targets = arguments[0].strip("{} ").split(",")
        address = self.address(arguments[1].strip()[1:-1])
        if space == "param":
            values = [f"ptx_parameter<{cpp(kind)}>({address}, {i})" for i in range(len(targets))]
            return "".join(self.write(t, kind, v) for t, v in zip(targets, values))
        volatile = "volatile " if "volatile" in modifiers else ""
        text = f"const {volatile}{cpp(kind)} *from = {self.memory(space, kind, address, len(targets), 'ATOMIC' if volatile else 'READ')};"
        # All elements are loaded before a register changes that the address may be made of.
        return "{" + text + "".join(self.write(t, kind, f"from[{i}]") for i, t in enumerate(targets)) + "}"

    def store(self, parts, arguments):
        modifiers, kind = parts[1:-1], parts[-1]
        space = next((m for m in modifiers if m in ("global", "shared", "local")), "generic")
        if set(modifiers) - {"global", "shared", "local", "volatile", "v2", "v4"}:
            raise Unknown(".".join(parts))
        sources = arguments[1].strip("{} ").split(",")
        address = self.address(arguments[0].strip()[1:-1])
        volatile = "volatile " if "volatile" in modifiers else ""
        text = f"{volatile}{cpp(kind)} *to = {self.memory(space, kind, address, len(sources), 'ATOMIC' if volatile else 'WRITE')};"
        return "{" + text + "".join(f"to[{i}] = {self.read(s, kind)};" for i, s in enumerate(sources)) + "}"

    def move(self, kind, arguments):
        to, source = arguments
        if source.strip().startswith("{"):
            pieces = source.strip("{} ").split(",")
            part = bits_of(kind) // len(pieces)
            value = " | ".join(f"({cpp(kind)})({self.read(p, f'b{part}')}) << {part * i}" for i, p in enumerate(pieces))
            return self.write(to, kind, value)
        if to.strip().startswith("{"):
            pieces = to.strip("{} ").split(",")
            part = bits_of(kind) // len(pieces)
            text = f"const {cpp(kind)} whole = {self.read(source, kind)};"
            return "{" + text + "".join(self.write(p, f"b{part}", f"({cpp(f'b{part}')})(whole >> {part * i})") for i, p in enumerate(pieces)) + "}"
        return self.write(to, kind, self.read(source, kind))

    def convert(self, parts, arguments):
        rounding, to, source = parts[1:-2], parts[-2], parts[-1]
        value = self.read(arguments[1], source if source in REALS else f"b{max(bits_of(source), 16)}")
        if source not in REALS:
            value = f"({cpp(source)}){value}"
        if set(rounding) - set(ROUNDED) - {"rn"} or len(rounding) > 1:
            raise Unknown(".".join(parts))
        how = rounding[0] if rounding else None
        if source in REALS and how in ROUNDED:
            suffix = "f" if source == "f32" else ""
            value = f"ptx_result({ROUNDED[how]}{suffix}({value}))"
        elif source in REALS and to not in REALS:
            raise Unknown(".".join(parts))
        if to in REALS:
            return self.write(arguments[0], to, f"ptx_result(({cpp(to)})({value}))" if source in REALS else f"({cpp(to)})({value})")
        if source in REALS:
            return self.write(arguments[0], to, f"ptx_to_integer<{cpp(to)}>({value})")
        return self.write(arguments[0], to, f"({cpp(to)})({value})")

    def compare(self, parts, arguments):
        if len(parts) != 3:
            raise Unknown(".".join(parts))
        test, kind = parts[1:]
        a, b = (self.read(x, kind) for x in arguments[1:])
        if kind not in REALS:
            value = f"{a} {COMPARISONS[test]} {b}"
        elif test in ("num", "nan"):
            value = f"{'' if test == 'nan' else '!'}({a} != {a} || {b} != {b})"
        elif test == "ne":
            value = f"({a} < {b} || {a} > {b})"
        elif test in COMPARISONS:
            value = f"{a} {COMPARISONS[test]} {b}"
        else:  # or one of them is a NaN
            opposite = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}[test]
            value = f"({a} < {b} || {a} > {b})" if opposite == "ne" else f"{a} {COMPARISONS[opposite]} {b}"
            value = f"!({value})"
        return self.write(arguments[0], "pred", value)

    def atomic(self, parts, arguments):
        space, operation, kind = parts[1], parts[-2], parts[-1]
        if set(parts[2:-2]) - {"sys"} or space not in ("global", "shared"):
            raise Unknown(".".join(parts))
        at = self.memory(space, kind, self.address(arguments[1].strip()[1:-1]), 1, "ATOMIC")
        values = [self.read(a, kind) for a in arguments[2:]]
        if operation == "cas":
            text = f"{cpp(kind)} found = {values[0]}; __atomic_compare_exchange_n({at}, &found, {values[1]}, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);"
            return "{" + text + self.write(arguments[0], kind, "found") + "}"
        call = {"add": "fetch_add", "exch": "exchange_n"}.get(operation)
        if not call:
            raise Unknown(".".join(parts))
        return self.write(arguments[0], kind, f"__atomic_{call}({at}, {values[0]}, __ATOMIC_SEQ_CST)")

    def shuffle(self, parts, arguments):
        self.meets = True
        to, is_there = (arguments[0].split("|") + [None])[:2]
        rest = ", ".join(self.read(a, "b32") for a in arguments[1:])
        text = f"bool there; const uint32_t got = ptx_shfl(\"{self.name}\", PTX_{parts[2].upper()}, {rest}, &there);"
        return "{" + text + self.write(to, "b32", "got") + (self.write(is_there, "pred", "there") if is_there else "(void)there;") + "}"

    def arithmetic(self, parts, arguments):
        """Instructions of values alone: an expression of the operands."""
        name, kind = parts[0], parts[-1]
        modifiers = parts[1:-1]
        real = kind in REALS
        unsigned = kind if real or kind == "pred" else f"u{bits_of(kind)}"

        def all_of(as_kind):
            return [self.read(a, as_kind) for a in arguments[1:]]

        def result(value, as_kind=kind):
            return self.write(arguments[0], as_kind, value)

        if real:
            values = all_of(kind)
            by_operator = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
            if name in by_operator and modifiers == ["rn"]:
                return result(f"ptx_result({values[0]} {by_operator[name]} {values[1]})")
            if name == "fma" and modifiers == ["rn"]:
                return result(f"ptx_fma({', '.join(values)})")
            if name == "fma" and modifiers == ["rz"] and kind == "f32":
                return result(f"ptx_fma_to_zero({', '.join(values)})")
            if name == "rcp" and modifiers == ["rn"]:
                return result(f"ptx_result(1 / {values[0]})")
            if name == "sqrt" and modifiers == ["rn"]:
                return result(f"ptx_result(sqrt{'f' if kind == 'f32' else ''}({values[0]}))")
            if name == "div" and modifiers == ["approx"]:
                return result(f"ptx_approximate({values[0]} / {values[1]}, {values[0]})")
            if name == "rcp" and modifiers == ["approx", "ftz"] and kind == "f32":
                return result(f"ptx_flushed(ptx_approximate(1 / ptx_flushed({values[0]}), {values[0]}))")
            if name in ("min", "max") and not modifiers:
                return result(f"ptx_{name}_real({', '.join(values)})")
            if name == "copysign" and not modifiers:
                return result(f"ptx_copysign({', '.join(values)})")
            if name == "neg" and not modifiers:
                return result(f"ptx_result(-{values[0]})")
            if name == "abs" and not modifiers:
                return result(f"ptx_result(fabs{'f' if kind == 'f32' else ''}({values[0]}))")
        elif name in ("add", "sub") and not modifiers:
            a, b = all_of(unsigned)
            return result(f"{a} {'+' if name == 'add' else '-'} {b}")
        elif name in ("add", "addc", "sub", "subc") and modifiers in (["cc"], []):
            a, b = all_of(unsigned)
            what = "ptx_add_carry" if name.startswith("add") else "ptx_sub_borrow"
            carry = "&carry" if modifiers else "&unused"
            return result(f"{what}<{cpp(unsigned)}>({a}, {b}, {'carry' if name.endswith('c') else 0}, {carry})", unsigned)
        elif name in ("mul", "mad") and modifiers == ["lo"]:
            values = all_of(unsigned)
            # A product of two uint16_t would be one of int.
            return result(f"(uint64_t){values[0]} * {values[1]}" + (f" + {values[2]}" if name == "mad" else ""))
        elif name == "mul" and modifiers == ["wide"]:
            a, b = all_of(kind)
            wide = f"{kind[0]}{2 * bits_of(kind)}"
            return result(f"({cpp(wide)}){a} * ({cpp(wide)}){b}", wide)
        elif name == "mul" and modifiers == ["hi"] and kind == "u64":
            a, b = all_of(kind)
            return result(f"(uint64_t)((unsigned __int128){a} * {b} >> 64)")
        elif name == "shf" and modifiers == ["l", "wrap"]:
            return result(f"ptx_shf_l_wrap({', '.join(all_of('b32'))})")
        elif name == "shf" and modifiers == ["r", "clamp"]:
            return result(f"ptx_shf_r_clamp({', '.join(all_of('b32'))})")
        elif modifiers:
            raise Unknown(".".join(parts))
        elif name in ("div", "rem"):
            return result(f"ptx_{name}<{cpp(kind)}>({', '.join(all_of(kind))})")
        elif name in ("min", "max"):
            a, b = all_of(kind)
            return result(f"{a} {'<' if name == 'min' else '>'} {b} ? {a} : {b}")
        elif name in ("and", "or", "xor"):
            a, b = all_of(kind)
            return result(f"{a} {'&' if name == 'and' else '|' if name == 'or' else '^'} {b}")
        elif name == "not":
            (a,) = all_of(kind)
            return result(f"!{a}" if kind == "pred" else f"~{a}")
        elif name == "neg":
            (a,) = all_of(unsigned)
            return result(f"0 - {a}")
        elif name == "abs":
            (a,) = all_of(kind)
            return result(f"{a} < 0 ? 0 - ({cpp(unsigned)}){a} : ({cpp(unsigned)}){a}")
        elif name in ("shl", "shr"):
            value = self.read(arguments[1], kind)
            return result(f"ptx_{name}<{cpp(kind)}>({value}, {self.read(arguments[2], 'b32')})")
        elif name == "bfi":
            a, b = (self.read(x, kind) for x in arguments[1:3])
            return result(f"ptx_bfi<{cpp(kind)}>({a}, {b}, {', '.join(self.read(x, 'b32') for x in arguments[3:])})")
        elif name == "prmt":
            return result(f"ptx_prmt({', '.join(all_of(kind))})")
        elif name == "clz" and kind == "b32":
            (a,) = all_of(kind)
            return result(f"{a} ? (uint32_t)__builtin_clz({a}) : 32")
        raise Unknown(".".join(parts))

    def instruction(self, text):
        """The statement of one, without its guard."""
        opcode, _, rest = text.partition(" ")
        parts = opcode.split(".")
        arguments = [a.strip() for a in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rest)]
        name = parts[0]
        if name == "bra":
            return f"goto {label(arguments[0])};"
        if name == "ret":
            return "return;"
        if name == "mov":
            return self.move(parts[1], arguments)
        if name == "ld":
            return self.load(parts, arguments)
        if name == "st":
            return self.store(parts, arguments)
        if name == "cvt":
            return self.convert(parts, arguments)
        if opcode in ("cvta.to.global.u64", "cvta.local.u64", "cvta.to.local.u64"):
            return self.write(arguments[0], "u64", self.read(arguments[1], "u64"))
        if name == "setp":
            return self.compare(parts, arguments)
        if name == "selp":
            a, b = (self.read(x, parts[1]) for x in arguments[1:3])
            return self.write(arguments[0], parts[1], f"{self.read(arguments[3], 'pred')} ? {a} : {b}")
        if name == "atom":
            return self.atomic(parts, arguments)
        if opcode == "bar.sync" and arguments == ["0"]:
            self.meets = True
            return "__syncthreads();"
        if opcode == "bar.warp.sync":
            self.meets = True
            return f"ptx_check_mask(\"{self.name}\", {self.read(arguments[0], 'b32')}); __syncwarp();"
        if opcode == "membar.sys":
            return "__atomic_thread_fence(__ATOMIC_SEQ_CST);"
        if parts[:2] == ["shfl", "sync"]:
            return self.shuffle(parts, arguments)
        if opcode == "match.any.sync.b64":
            self.meets = True
            return self.write(arguments[0], "b32", f"ptx_match_any(\"{self.name}\", {self.read(arguments[1], 'b64')}, {self.read(arguments[2], 'b32')})")
        return self.arithmetic(parts, arguments)

    def statement(self, text):
        guard = re.match(r"@(!?)(%\w+)\s+", text)
        if guard:
            return f"if ({guard[1]}{guard[2].replace('%', 'v_')}) {{ {self.instruction(text[guard.end():])} }}"
        return self.instruction(text)

    # ---- the function ----

    def finished(self):
        """Its lines, and what is checked of it when the library is loaded."""
        lines = [line.replace("{SHARED}", f"{self.shared_bytes}u") for line in self.lines]
        name, size = self.name, next(iter(self.parameters.values()))
        meets = [f"static const eddy_grid_meets {name}_meets({name});"] if self.meets else []
        return ["extern \"C\" {", f"extern const unsigned {name}_bytes;", f"void {name}(const void *parameters)", lines[0], "uint32_t carry = 0, unused; (void)carry, (void)unused;", *lines[1:],
                f"static __attribute__((alias(\"{name}\"))) void {name}_translated(const void *parameters);", "}", *meets,
                f"static const ptx_kernel {name}_kernel(\"{name}\", {size}, {name}_bytes, {name}, {name}_translated);"]
