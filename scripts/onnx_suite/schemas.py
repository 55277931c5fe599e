"""Whether docs/operators.md, which is made from the op table, has every operator, version and type of tensors that ONNX's schemas have."""

import re

import onnx

# What is left out, and why.
LEFT_OUT = {
    ("ai.onnx.preview.training", "Gradient"): "it trains; refused by name",
    ("ai.onnx", "Col2Im"): "it adds: numbers only",
    ("ai.onnx", "GridSample"): "it computes between elements: numbers only",
}
NAMES = {"float": "fp32", "double": "fp64", "float16": "fp16", "bfloat16": "bf16"}
TENSOR = re.compile(r"tensor\((\w+)\)$")
SMALL = re.compile(r"float(\d)(e\dm\d\w*)$")  # float8e4m3fn: fp8_e4m3fn


def dtype_of(name):
    small = SMALL.match(name)
    return f"fp{small[1]}_{small[2]}" if small else NAMES.get(name, name)


def tensor_dtypes(names):
    return {dtype_of(match[1]) for match in map(TENSOR.match, names) if match}


def read_page(text):
    """{(domain, operator): (versions, dtypes of all its type variables)}; no dtypes where it binds no variable."""
    families, operators, domain = {}, {}, None
    for line in text.splitlines():
        if heading := re.match(r"## (\S+)$", line):
            domain = heading[1]
        elif family := re.match(r"- `(\w+)`: (.*)", line):
            families[family[1]] = set(family[2].split(", "))
        elif row := re.match(r"\| (\w+) \| ([\d, ]+) \| ([^|]*) \|", line):
            dtypes = set()
            for name in re.split(r"; |, ", re.sub(r"[\w()]+: ", "", row[3])):
                dtypes |= families.get(name, {name} - {""})
            operators[domain, row[1]] = ({int(version) for version in row[2].split(",")}, dtypes)
    return operators


def gaps(operators, schemas):
    """Lines: what ONNX has and `operators` lack."""
    lines = []
    newest = {}
    for schema in schemas:
        key = (schema.domain or "ai.onnx", schema.name)
        if key in LEFT_OUT:
            continue
        if key not in operators:
            lines.append(f"{key[0]}: {schema.name} {schema.since_version}: no such operator")
            continue
        if schema.since_version not in operators[key][0]:
            lines.append(f"{key[0]}: {schema.name}: no version {schema.since_version}")
        if key not in newest or schema.since_version > newest[key].since_version:
            newest[key] = schema
    for key, schema in newest.items():
        # Operators whose values may be of any type or kind (Scan, If, Loop, Identity, ...) bind no variable to them.
        if not operators[key][1] or any("seq(" in name for one in schema.type_constraints for name in one.allowed_type_strs):
            continue
        wanted = set().union(*(tensor_dtypes(one.allowed_type_strs) for one in schema.type_constraints))
        if missing := wanted - operators[key][1]:
            lines.append(f"{key[0]}: {schema.name}: no {', '.join(sorted(missing))}")
    return sorted(lines)


def check(page):
    return gaps(read_page(page.read_text()), onnx.defs.get_all_schemas_with_history())
