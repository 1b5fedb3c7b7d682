"""Which readers know which foreign SQLite databases."""

from memcli.exchange.memories.langmem import LANGMEM
from memcli.exchange.memories.mem0 import MEM0
from memcli.exchange.shapes import TableReader
from memcli.exchange.transcripts.langchain import LANGCHAIN
from memcli.exchange.transcripts.llamaindex import LLAMAINDEX

TABLE_READERS: tuple[TableReader, ...] = (LLAMAINDEX, LANGCHAIN, LANGMEM, MEM0)
"""Every format of database that can be read; of two with equal votes the earlier one is taken."""
