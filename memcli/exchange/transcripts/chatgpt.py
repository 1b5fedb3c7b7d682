"""ChatGPT's data export: `conversations.json` or one of its parts, or a single conversation of it.

- A conversation is a tree. What is read is the path from `current_node` to the root, whatever the order of the map;
  how many messages lie on other branches is told, and `chatgpt-branches` reads each branch as a conversation.
- Skipped are nodes that nobody saw: empty ones, hidden ones, the profile and custom instructions.
- Thoughts are the thinking of the answer that follows them. What an assistant writes to anybody but `all` is a call of
  that tool, its text the arguments. Calls have no ids, and one call may have several results.
- Images, sound and files are noted, not their bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import SURE, Warn, call, compact, first_text, media, shown, text_or_none, when
from memcli.exchange.transcripts.exports import Item, dictionary, items, listed
from memcli.exchange.transcripts.parts import Parts
from memcli.facts import Conversation, Json, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_AROUND = ("conversations",)
_HIDDEN = ("is_visually_hidden_from_conversation", "is_visually_hidden", "is_user_system_message")
_SILENT = frozenset({"user_editable_context", "model_editable_context", "reasoning_recap"})
_NODE = frozenset({"message", "parent", "children"})
_MEDIA: Mapping[str, str] = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "real_time_user_audio_video_asset_pointer": "audio",
    "video_asset_pointer": "video",
    "video_container_asset_pointer": "video",
    "file_asset_pointer": "file",
}


@record
class ChatGPT:
    """The reader of ChatGPT exports.

    Args:
        branches: Read every branch as a conversation of its own; such a reader must be named to be used.
    """

    branches: bool = False

    @property
    def name(self) -> str:
        """The word for `--format`."""
        return "chatgpt-branches" if self.branches else "chatgpt"

    @property
    def title(self) -> str:
        """What a person calls the format."""
        return "a ChatGPT export, branch by branch" if self.branches else "a ChatGPT export"

    def claims(self, value: Json | Prose) -> int:
        """Return `SURE` for a tree of messages, or a list with one in it."""
        return SURE if not self.branches and any(map(_is_tree, listed(value, _AROUND))) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield the active path of each conversation, or each branch."""
        for item in items(records, warn, around=_AROUND):
            yield from self._conversations(item, warn)

    def _conversations(self, item: Item, warn: Warn) -> Iterator[Conversation]:
        mapping = item.value.get("mapping")
        if not isinstance(mapping, dict):
            item.skip(warn, f"what holds no tree of messages: {shown(mapping)}")
            return
        tree = _Tree(mapping, item, item.told(warn))
        paths = tree.branches() if self.branches else [tree.active()]
        told = False
        for number, path in enumerate(paths, start=1):
            turns = tree.turns(path)
            told = told or bool(turns)
            if turns:
                title = text_or_none(item.value.get("title"))
                suffix = f" (branch {number} of {len(paths)})" if len(paths) > 1 else ""
                yield Conversation(
                    format=self.name,
                    turns=turns,
                    session=first_text(item.value, "conversation_id", "id"),
                    title=f"{title or ''}{suffix}".strip() or None,
                )
        if not told:
            item.skip(warn, "a conversation without messages")
        elif not self.branches:
            tree.tell_others(paths[0])


CHATGPT = ChatGPT()
CHATGPT_BRANCHES = ChatGPT(branches=True)


def _is_tree(value: Json | Prose) -> bool:
    mapping = value.get("mapping") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(mapping, dict):
        return False
    return "current_node" in value or any(
        isinstance(node, dict) and not _NODE.isdisjoint(node) for node in mapping.values()
    )


@record
class _Said:
    """What one node comes to: a message, thoughts for the next one, or nothing."""

    turn: Turn | None = None
    thinking: str | None = None
    doubts: tuple[str, ...] = ()


class _Tree:
    """The nodes of one conversation, and the paths through them."""

    def __init__(self, mapping: Mapping[str, Json], item: Item, warn: Warn) -> None:
        self._line = item.line
        self._warn = warn
        self._current = text_or_none(item.value.get("current_node"))
        self._nodes = {key: dictionary(node) for key, node in mapping.items()}
        self._parents = self._linked()
        self._said = {key: _said(key, node) for key, node in self._nodes.items()}
        self._told: set[str] = set()
        for key, node in mapping.items():
            if not isinstance(node, dict):
                self._tell(f"skipped what is no node, {shown(key)}: {shown(node)}")

    def active(self) -> list[str]:
        """Return the nodes from the root to the current one, or to the end of the last branch where none is named."""
        if self._current in self._nodes:
            return self._path(self._current)
        leaves = self._leaves()
        what = "no current node" if self._current is None else f"a current node that is not there, {self._current!r}"
        self._tell(f"it has {what}; the last branch was taken")
        return self._path(self._last_leaf(leaves)) if leaves else []

    def branches(self) -> list[list[str]]:
        """Return a path for each branch, without those whose messages are the beginning of another's."""
        paths = [self._path(leaf) for leaf in self._leaves()]
        visible = [tuple(key for key in path if self._said[key].turn is not None) for path in paths]
        begun = {shown_path[:end] for shown_path in visible for end in range(len(shown_path))}
        unique: dict[tuple[str, ...], list[str]] = {}
        for path, keys in zip(paths, visible, strict=True):
            if keys and keys not in begun:
                unique.setdefault(keys, path)
        return list(unique.values())

    def turns(self, path: Sequence[str]) -> tuple[Turn, ...]:
        """Return the messages on a path, each with the one before it as its parent."""
        turns: list[Turn] = []
        thoughts: list[str] = []
        for key in path:
            said = self._said[key]
            if key not in self._told:
                self._told.add(key)
                for doubt in said.doubts:
                    self._tell(f"message {len(turns) + 1}: {doubt}")
            if said.thinking is not None:
                thoughts.append(said.thinking)
            if said.turn is None:
                continue
            turn = replace(said.turn, parent=turns[-1].origin if turns else None)
            if turn.role is Role.ASSISTANT and thoughts:
                turn = replace(turn, thinking="\n".join(thoughts))
                thoughts = []
            turns.append(turn)
        if thoughts and turns:
            self._tell(f"skipped thoughts that no answer followed: {shown(thoughts[-1])}")
        return self._answered(turns)

    def tell_others(self, path: Sequence[str]) -> None:
        """Tell how many messages lie on other branches."""
        here = frozenset(path)
        others = sum(said.turn is not None for key, said in self._said.items() if key not in here)
        if others:
            many = "1 message lies" if others == 1 else f"{others:,} messages lie"
            self._tell(f"{many} on other branches; `--format {CHATGPT_BRANCHES.name}` reads every branch")

    def _tell(self, message: str) -> None:
        self._warn(Warned(line=self._line, message=message))

    def _linked(self) -> dict[str, str]:
        parents: dict[str, str] = {}
        for key, node in self._nodes.items():
            for child in _children(node):
                if child in self._nodes:
                    parents.setdefault(child, key)
        for key, node in self._nodes.items():
            parent = node.get("parent")
            if isinstance(parent, str) and parent in self._nodes:
                parents[key] = parent
        return parents

    def _leaves(self) -> list[str]:
        inner = frozenset(self._parents.values())
        return [key for key in self._nodes if key not in inner]

    def _last_leaf(self, leaves: Sequence[str]) -> str:
        """Return the end of the way that takes the last child everywhere, from the root with the longest way down."""
        way = max((self._path(leaf) for leaf in leaves), key=len)
        key, passed = way[0], {way[0]}
        while True:
            children = [child for child in _children(self._nodes[key]) if self._parents.get(child) == key]
            children = children or [child for child, parent in self._parents.items() if parent == key]
            if not children or children[-1] in passed:
                return key
            key = children[-1]
            passed.add(key)

    def _path(self, leaf: str | None) -> list[str]:
        path: dict[str, None] = {}
        key = leaf
        while key is not None and key not in path:
            path[key] = None
            key = self._parents.get(key)
        if key is not None:
            self._tell(f"its messages answer each other in a circle, at {shown(key)}")
        return list(reversed(path))

    def _answered(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Return the turns, results named after their calls; calls without a result are told.

        The newest call of that name is the one that is answered, since nothing else links them.
        """
        waiting: list[tuple[str, int]] = []
        named = list(turns)
        for index, turn in enumerate(turns):
            waiting += [(made.name, index) for made in turn.tool_calls]
            if turn.role is Role.TOOL and waiting:
                place = next((at for at in reversed(range(len(waiting))) if waiting[at][0] == turn.name), -1)
                name, _ = waiting.pop(place)
                named[index] = turn if turn.name is not None else replace(turn, name=name)
        for name, index in waiting:
            self._tell(f"message {index + 1}: a call of {shown(name)} without a result")
        return tuple(named)


def _children(node: Mapping[str, Json]) -> list[str]:
    children = node.get("children")
    return [child for child in children if isinstance(child, str)] if isinstance(children, list) else []


def _said(key: str, node: Mapping[str, Json]) -> _Said:
    message = node.get("message")
    if message is None:
        return _Said()
    if not isinstance(message, dict):
        return _Said(doubts=(f"skipped what is no message: {shown(message)}",))
    metadata = dictionary(message.get("metadata"))
    content = message.get("content")
    kind = text_or_none(dictionary(content).get("content_type")) or "text"
    if kind in _SILENT or any(metadata.get(flag) is True for flag in _HIDDEN):
        return _Said()
    parts = _content(content, kind)
    if kind == "thoughts":
        return _Said(thinking="\n".join(parts.thinking) or None, doubts=tuple(parts.doubts))
    _uploads(metadata, parts)
    return _message(key, message, parts)


def _message(key: str, message: Mapping[str, Json], parts: Parts) -> _Said:
    author = message.get("author")
    role, raw_role = parts.role(author.get("role") if isinstance(author, dict) else author)
    at, at_text = when(message)
    text = "\n".join(parts.texts)
    recipient = text_or_none(message.get("recipient")) or "all"
    calls = (call(None, recipient, text),) if role is Role.ASSISTANT and recipient != "all" else ()
    if not text and not calls and not parts.attachments:
        return _Said(doubts=tuple(parts.doubts))
    turn = Turn(
        role=role,
        content="" if calls else text,
        name=first_text(dictionary(author), "name"),
        at=at,
        at_text=at_text,
        origin=text_or_none(message.get("id")) or key,
        tool_calls=calls,
        attachments=tuple(parts.attachments),
        raw_role=raw_role,
        extra=tuple(parts.extra),
    )
    return _Said(turn=turn, doubts=tuple(parts.doubts))


def _content(content: Json, kind: str) -> Parts:
    found = Parts()
    if isinstance(content, str):
        _text(content, found)
    elif not isinstance(content, dict):
        found.doubts.append("it has no content" if content is None else f"its content is no text: {shown(content)}")
    elif kind == "thoughts":
        found.thinking.extend(_thoughts(content.get("thoughts"), found))
    elif "parts" in content:
        parts = content["parts"]
        for part in parts if isinstance(parts, list) else [parts]:
            _part(part, found)
    else:
        _whole(content, kind, found)
    return found


def _thoughts(thoughts: Json, found: Parts) -> Iterator[str]:
    for thought in thoughts if isinstance(thoughts, list) else [thoughts]:
        text = first_text(thought, "content", "summary") if isinstance(thought, dict) else text_or_none(thought)
        if text is not None:
            yield text
        elif thought is not None and not isinstance(thought, dict):
            found.doubts.append(f"skipped what is no thought: {shown(thought)}")


def _whole(content: Mapping[str, Json], kind: str, found: Parts) -> None:
    """Add content that is no list of parts: code, what it printed, a quote, a page, a screenshot, an error."""
    text = next((content[key] for key in ("text", "result", "content") if isinstance(content.get(key), str)), None)
    if isinstance(text, str):
        _text(text, found)
        quoted = [(key, content.get(key)) for key in ("title", "url")]
        found.extra.extend((key, value) for key, value in quoted if isinstance(value, str) and value)
    elif isinstance(content.get("screenshot"), dict):
        _part(content["screenshot"], found)
    else:
        found.doubts.append(f"content of type {shown(kind)} holds no text; noted, not read")
        if kind != "text":
            found.attachments.append(f"content of type {kind[:40]}")


def _part(part: Json, found: Parts) -> None:
    if isinstance(part, str):
        _text(part, found)
    elif isinstance(part, dict):
        kind = text_or_none(part.get("content_type")) or ""
        inner = next(
            (part[key] for key in ("audio_asset_pointer", "video_container_asset_pointer") if key in part), None
        )
        if kind in _MEDIA:
            found.attachments.append(media(_MEDIA[kind], _pointer(part) or _pointer(inner)))
        elif isinstance(part.get("text"), str):
            _text(part["text"], found)
        else:
            found.attachments.append(f"part of type {kind[:40]}" if kind else "part without a type")
            found.doubts.append(f"a part of type {shown(kind)} is not known; noted, not read")
    elif part is not None:
        found.texts.append(compact(part))
        found.doubts.append(f"a part is no text; kept as text: {shown(part)}")


def _text(text: Json, found: Parts) -> None:
    if text != "":
        found.text(text)


def _pointer(value: Json) -> str | None:
    return first_text(value, "asset_pointer") if isinstance(value, dict) else text_or_none(value)


def _uploads(metadata: Mapping[str, Json], found: Parts) -> None:
    """Add a note for each file that was handed over and does not stand among the parts."""
    uploads = metadata.get("attachments")
    there = " ".join(found.attachments)
    for upload in uploads if isinstance(uploads, list) else []:
        source = dictionary(upload)
        identity = first_text(source, "id")
        if source and (identity is None or identity not in there):
            found.attachments.append(media("file", first_text(source, "name", "id")))
