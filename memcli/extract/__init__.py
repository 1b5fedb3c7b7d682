"""Claims from messages: by built-in rules, which need no model, or by any other program that reads JSON.

The rules read plain first-person statements of the user. What they never read: messages of any other role;
questions; what stands under an "if", a "would" or in reported speech; quotes, code, pasted logs and tagged blocks such
as `<system-reminder>`; a text the user hands over to be translated or reworded. A statement with a slot becomes a
sentence about "the user"; one that is kept as free text keeps the user's own words. Validity and confidence stay
unknown: the rules invent neither.
"""

from memcli.extract.command import EXTRACTOR_RULE, claims_of, fact_document, message_document, run_extractor
from memcli.extract.reader import RULES_READER, Reader, command_reader, persistent, said_read, stretches, was_read
from memcli.extract.rules import MAX_STATEMENT, MAX_VALUE, RULES, SUBJECT, extract

__all__ = [
    "EXTRACTOR_RULE",
    "MAX_STATEMENT",
    "MAX_VALUE",
    "RULES",
    "RULES_READER",
    "SUBJECT",
    "Reader",
    "claims_of",
    "command_reader",
    "extract",
    "fact_document",
    "message_document",
    "persistent",
    "run_extractor",
    "said_read",
    "stretches",
    "was_read",
]
