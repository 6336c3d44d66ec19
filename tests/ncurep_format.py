"""The messages of the .ncu-rep format, version 7, declared from the field numbers that NVIDIA documents.

``SPEC`` holds only the fields that ``tests.ncurep`` writes; ``M`` holds the protobuf class of each message.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = tuple[str, int, str] | tuple[str, int, str, str]

SPEC: dict[str, list[Field]] = {
    # name -> [(field, number, type or message, "" optional | "!" required | "*" repeated)]
    "Dim3": [("X", 1, "uint64"), ("Y", 2, "uint64"), ("Z", 3, "uint64")],
    "Value": [
        ("StringValue", 1, "string"),
        ("FloatValue", 2, "float"),
        ("DoubleValue", 3, "double"),
        ("Uint32Value", 4, "uint32"),
        ("Uint64Value", 5, "uint64"),
    ],
    "Instance": [("CorrelationId", 1, "Value"), ("ElementValue", 2, "Value", "!")],
    "Metric": [
        ("NameId", 1, "uint32", "!"),
        ("MetricValue", 2, "Value"),
        ("MetricValueList", 3, "Instance", "*"),
    ],
    "SourceFile": [("FileName", 1, "string", "!"), ("Content", 2, "string")],
    "SourceFiles": [("Files", 1, "SourceFile", "*")],
    "Relocation": [("SymbolName", 1, "string"), ("Address", 2, "uint64"), ("SymbolIndex", 3, "uint32")],
    "Relocations": [("Functions", 1, "Relocation", "*"), ("Objects", 2, "Relocation", "*")],
    "Source": [
        ("Reference", 1, "uint64"),
        ("Binary", 4, "bytes"),
        ("SassLevel", 5, "uint32"),
        ("SMRevision", 6, "uint32"),
        ("BinaryFlags", 7, "uint32"),
        ("SourceFiles", 8, "SourceFiles"),
        ("RelocationData", 9, "Relocations"),
    ],
    "PushPopRange": [("Name", 1, "string", "!")],
    "PushPopDomain": [("Id", 1, "uint64", "!"), ("Stack", 3, "PushPopRange", "*")],
    "NvtxThread": [("TID", 1, "uint32", "!"), ("PushPopDomains", 2, "PushPopDomain", "*")],
    "NvtxDomain": [("Id", 1, "uint64", "!"), ("Name", 2, "string", "!")],
    "Nvtx": [
        ("Domains", 1, "NvtxDomain", "*"),
        ("Threads", 2, "NvtxThread", "*"),
        ("DefaultDomain", 4, "uint64"),
    ],
    "SectionMetric": [("Name", 1, "string", "!"), ("Label", 2, "string")],
    "SectionHeader": [("Rows", 1, "uint32"), ("Metrics", 2, "SectionMetric", "*")],
    "Section": [
        ("Identifier", 1, "string", "!"),
        ("DisplayName", 2, "string", "!"),
        ("Order", 3, "uint32"),
        ("Header", 4, "SectionHeader"),
        ("Description", 7, "string"),
    ],
    "RuleMessage": [
        ("Message", 1, "string", "!"),
        ("Type", 2, "uint32", "!"),
        ("Id", 3, "int32"),
        ("Name", 4, "string"),
    ],
    "RuleFocus": [
        ("MessageId", 1, "int32"),
        ("MetricName", 2, "string"),
        ("MetricValue", 3, "double"),
        ("Severity", 4, "uint32"),
        ("Info", 5, "string"),
    ],
    "RuleSpeedup": [("SpeedupType", 1, "uint32"), ("Value", 2, "double")],
    "RuleItem": [
        ("Message", 1, "RuleMessage"),
        ("FocusMetrics", 8, "RuleFocus", "*"),
        ("Speedup", 10, "RuleSpeedup"),
    ],
    "RuleBody": [("Items", 1, "RuleItem", "*")],
    "RuleResult": [
        ("Identifier", 1, "string", "!"),
        ("DisplayName", 2, "string", "!"),
        ("Body", 3, "RuleBody"),
        ("SectionIdentifier", 4, "string"),
    ],
    "ClockStatus": [("RequestedLock", 1, "uint32", "!"), ("ExecutedLocked", 2, "uint32", "!")],
    "Result": [
        ("ThreadID", 1, "uint32", "!"),
        ("APICallID", 2, "uint64", "!"),
        ("ProgramHandle", 3, "uint64", "!"),
        ("KernelID", 4, "uint64", "!"),
        ("KernelMangledName", 5, "string", "!"),
        ("KernelFunctionName", 6, "string", "!"),
        ("KernelDemangledName", 7, "string", "!"),
        ("WorkDimensions", 8, "uint32", "!"),
        ("GlobalWorkOffset", 9, "Dim3", "!"),
        ("GridSize", 10, "Dim3", "!"),
        ("BlockSize", 11, "Dim3", "!"),
        ("MetricResults", 13, "Metric", "*"),
        ("CreationTime", 14, "uint64"),
        ("Source", 15, "Source", "!"),
        ("Api", 16, "uint32"),
        ("Sections", 17, "Section", "*"),
        ("RuleResults", 19, "RuleResult", "*"),
        ("Nvtx", 21, "Nvtx"),
        ("ContextID", 22, "uint32"),
        ("StreamID", 23, "uint32"),
        ("ClockStatus", 25, "ClockStatus"),
        ("CollectionScope", 29, "uint32"),
    ],
    # a range or a graph: several launches counted together, without name and launch configuration
    "RangeResult": [
        ("ThreadID", 1, "uint32", "!"),
        ("APICallID", 2, "uint64", "!"),
        ("MetricResults", 4, "Metric", "*"),
        ("CreationTime", 5, "uint64"),
        ("Api", 6, "uint32"),
        ("Sections", 7, "Section", "*"),
        ("Nvtx", 10, "Nvtx"),
        ("ContextID", 11, "uint32"),
    ],
    "Attribute": [("Name", 1, "string", "!"), ("Value", 2, "Value", "!")],
    "DeviceInfo": [("ID", 1, "uint32", "!"), ("Name", 2, "string"), ("Attributes", 3, "Attribute", "*")],
    "System": [("OSName", 1, "string"), ("Architecture", 4, "string"), ("Platform", 6, "uint32")],
    "Version": [("Provider", 1, "string", "!"), ("Version", 2, "string", "!")],
    "Session": [
        ("ProcessID", 1, "uint32"),
        ("CreationTime", 2, "uint64"),
        ("HostSystemInfo", 3, "System"),
        ("TargetSystemInfo", 4, "System"),
        ("DeviceAttributes", 6, "DeviceInfo", "*"),
        ("VersionInfo", 8, "Version", "*"),
        ("ProfilerCmdline", 11, "string"),
    ],
    "Strings": [("Strings", 1, "string", "*")],
    "Process": [("ProcessID", 1, "uint32", "!"), ("Hostname", 2, "string"), ("ProcessName", 3, "string")],
    "Block": [
        ("NumSources", 1, "uint32"),
        ("NumResults", 2, "uint32"),
        ("SessionDetails", 3, "Session"),
        ("StringTable", 4, "Strings"),
        ("PayloadSize", 5, "uint32"),
        ("Process", 6, "Process"),
        ("NumRangeResults", 7, "uint32"),
        ("NumGraphResults", 9, "uint32"),
    ],
    "File": [("Version", 1, "uint32", "!")],
}


def _messages() -> dict[str, Any]:
    proto = descriptor_pb2.FieldDescriptorProto
    labels = {"": proto.LABEL_OPTIONAL, "!": proto.LABEL_REQUIRED, "*": proto.LABEL_REPEATED}
    file = descriptor_pb2.FileDescriptorProto(name="ncukit_ncurep.proto", package="ncurep", syntax="proto2")
    for name, fields in SPEC.items():
        message = file.message_type.add(name=name)
        for label, number, kind, *rule in fields:
            entry = message.field.add(name=label, number=number, label=labels[rule[0] if rule else ""])
            if kind in SPEC:
                entry.type, entry.type_name = proto.TYPE_MESSAGE, f".ncurep.{kind}"
            else:
                entry.type = getattr(proto, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ncurep.{name}")) for name in SPEC
    }


M = _messages()
