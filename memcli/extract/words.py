"""The words and shapes that the built-in rules know, all in one place."""

import re
from types import MappingProxyType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEXT_CLAUSE = (
    r"(?:i|i'm|i'd|i've|i'll|my|we|we're|you|your|he|she|it|it's|they|this|that|there|please|can|could|do|does|did|don't"
    r"|would|will|should|is|am|are|was|were|have|has|had|want|need|like|love|live|work|use|prefer|also|then|so|but"
    r"|what|how|why|where|when|which|who|if|let|let's|thanks|thank|not|because|since|and\s+(?:i|i'm|my|we|it))\b"
)
"""A word that begins another clause after a comma or an "and"."""

FILLER = re.compile(
    r"(?:[\s,]+(?:now|currently|please|btw|by the way|too|as well|anymore|again|thanks|thank you|though|actually"
    r"|at the moment|these days|right now))+\Z",
    re.IGNORECASE,
)
"""What trails a value and says nothing of it."""

POINTING = re.compile(r"(?:it|this|that|these|those|them|him|her|here|there|something|you|yours?)\b", re.IGNORECASE)
"""A value that begins like this is understood in the chat only."""

POINTS = re.compile(r"\b(?:this|that|these|those|you|yours?|one|ones|options?|latter|former)\b", re.IGNORECASE)
"""A value with one of these speaks of something in the chat."""

OFTEN = r"(?:(?:actually|currently|now|still|also|just|really|already|mostly|usually|generally|personally)\s+)*"

LATELY = r"(?:(?:just|recently|actually|already|finally|also|then)\s+)*"

LEAD = (
    r"(?:(?:ok|okay|so|and|also|hi|hey|hello|hi\ there|hey\ there|sure|well|yes|no|but|oh|thanks|thank\ you|great|now"
    r"|then|fyi|just|by\ the\ way|btw|please|[-*•]|\d+[.)])[\s,!:–]+)*"
)
"""What may stand before an order, such as "OK, and please"."""

ASKS = re.compile(
    rf"\s*{LEAD}(?:is|are|am|was|were|do|does|did|can|could|would|will|should|has|have|what|what's|why|how|when"
    r"|where|which|who|who's|whose|guess|may\s+i)\b",
    re.IGNORECASE,
)
"""How a question begins, also one without its mark."""

UNREAL = re.compile(
    r"""\b(?:if|unless|suppose|supposing|imagine|pretend|assum(?:e|ing)|hypothetically|when|whenever|let's\ say|used\ to
    |as\ an?\ \w+,|(?<!to\ )say|sa(?:ys|id|ying)|t(?:ell|ells|old)|claim(?:s|ed)?|thinks|thought|wrote|asked
    |example|e\.g\.)(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
"""After one of these the rest of the sentence is no statement of the user about how things are."""

UNSURE = re.compile(
    r"\b(?:not|never|no|cannot|would|could|might|wish|maybe|perhaps|probably|possibly|i think|i guess"
    r"|doubt)\b|n't\b",
    re.IGNORECASE,
)
"""After one of these the rest of the clause is denied or doubtful."""

CLAUSE_BREAK = re.compile(r"[,;:–—]|\s-\s|\b(?:but|and|so)\b", re.IGNORECASE)

HANDED_OVER = re.compile(
    r"""\b(?:translat\w+ | rephrase | paraphrase | proofread | reword | rewrite | grammar | role-?play | act\ as
    | pretend | you\ are\ an? | writ(?:e|ing)\ (?:me\ )?(?:an?|the|my)\ (?:\w+\ ){0,3}?(?:story|poem|song|essay|letter
    |e-?mail|dialogue|scene|monologue|bio|biography|speech|post|tweet|novel|chapter))\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""From here on a message may be a text to work on, in which "I" is anybody."""

CIRCUMSTANCE = re.compile(r"\s(?:at|for|in|with|on|by|during|from|near|here)\b", re.IGNORECASE)

OUTDONE = re.compile(r"\bI(?:'ve| have)?\s+(?:\w+\s+)?(?:beat|beaten|broke|broken|smashed)\s+\Z", re.IGNORECASE)
"""A record that was beaten is none any more."""

LINKS = _words("of de da do del della di la le los las el al the upon sur van von der den")
"""Small words inside a name."""

NO_NAME = _words(
    "i i'm i've i'd i'll my a an the please can could do does it he she we you they this that what how and but so if "
    "also thanks not no"
)
"""Words that are no part of a name even with a capital."""

LOWER_ENDS = _words("and but so with in on at near for from since now because where which right also too as by to")
"""Where a name ends that was written without capitals."""

LOWER_NO_NAME = _words(
    "a an the my our your his her their this that it one fear peace denial poverty hope harmony luxury pain hiding "
    "chaos student night home least all once times first weekends dawn myself them him us me free someone"
)
""""I live in fear" and "I work at night" tell no place and no employer."""

NO_PLACE = _words(
    "python rust go java ruby kotlin swift scala linux windows mac ubuntu debian fedora android postgres docker "
    "kubernetes git github gitlab slack teams zoom vim emacs firefox chrome safari azure react vue angular django "
    "flask redis mongo terraform notion jira step phase part section chapter option plan version management"
)
"""What people move to without moving house."""

MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)

DAY = r"\d{1,2}(?:st|nd|rd|th)?"

BIRTH_DATE = re.compile(
    rf"""(?:the\s+)?(?P<date>\d{{4}}-\d\d-\d\d | \d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}
    | {DAY}(?:\s+of)?\s+{MONTH}(?:,?\s+\d{{4}})? | {MONTH}\s+{DAY}(?:,?\s+\d{{4}})? | {MONTH},?\s+\d{{4}})(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)

BIRTH_YEAR = re.compile(r"(?P<date>(?:19|20)\d\d)(?!\w)")

UNIT = (
    r"(?:\s?(?:%|percent|kg|kilos?|kilograms?|g|lbs?|pounds|stone|cm|m|meters?|metres?|km|kilomet(?:er|re)s?|miles?|feet"
    r"|ft|inch(?:es)?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?"
    r"|dollars|euros?|usd|eur|k|bpm))?"
)

NUMBER = rf"(?P<value>[$€£]?\d(?:[\d.,:/-]*\d)?{UNIT})(?!\w)"

AFTER_NUMBER = re.compile(
    r"\s*(?:[.,;!)–—-]|\Z|(?:this|in|at|on|for|and|but|to|from|with|by|so|now|as|because|which|that)\b)"
)

ATTRIBUTE = r"(?P<attribute>[^\W\d_][\w'-]*(?:\s+[\w'-]+){0,3}?)"

FRESH = re.compile(r"(?:(?:new|current|actual|updated|correct|own)\s+)+(?=\S)", re.IGNORECASE)

STALE = re.compile(r"\b(?:old|previous|former|ex|last(?!\s+name)|next|first(?!\s+(?:name|language)))\b", re.IGNORECASE)
"""Attributes of another time."""

NO_ATTRIBUTE = _words(
    "and or that which who whom i you he she it we they is are was to with for from in on at by as than if when only "
    "but so not just because about"
)
"""Words that show that "my … is" is no attribute but a sentence."""

PASSING = _words(
    "question questions problem problems issue issues point guess goal goals idea ideas plan plans concern "
    "understanding code test tests build app program script function query error errors bug fault pleasure hope "
    "opinion suggestion request task intention assumption thought thoughts life mind heart day week answer thing "
    "things way main favorite favourite preferred best turn choice take feeling bad list team group set pair family "
    "class collection stack pack total couple lot kind sort part version input output result results data json "
    "array table"
)
"""What is true of it today tells nothing that lasts."""

SECRET = re.compile(
    r"\b(?:pass(?:word|phrase|code)|pin|secret|token|(?:api|access|secret|private|ssh|encryption)\s+key|key|ssn|cvv"
    r"|social\s+security\s+number|card\s+number|credit\s+card|debit\s+card)\b",
    re.IGNORECASE,
)
"""Memory is shown and sent to models: what opens doors is kept only on an explicit order to remember."""

LASTING = re.compile(
    r"^(?:favou?rite|preferred|native)\b|\b(?:pronouns|time\s?zone|star sign|blood type|nationality|occupation"
    r"|profession|hobby|hobbies|first language)$",
    re.IGNORECASE,
)
"""Attributes whose value may be any word."""

NO_VALUE = re.compile(
    r"""(?:to|that|how|what|why|when|where|who|if|whether|not|no|very|so|too|really|still|always|never|just|about|because
    |like|on|in|at|for|with|from|by|of|under|over|out|off|up|down|gone|back|fine|ok|okay|good|bad|great|better|worse
    |different|the\ same|a\ bit|a\ lot|all|going|being|getting|having|more|less|as|wrong|right|also|only|my
    |today|tomorrow|yesterday|tonight|next|last|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b | [\[{<(/\\|=]""",
    re.IGNORECASE | re.VERBOSE,
)
"""How a remark begins that is no value."""

THIRD = MappingProxyType(
    {
        "i": "they", "i'm": "they're", "i've": "they've", "i'd": "they'd", "i'll": "they'll", "me": "them",
        "my": "their", "mine": "theirs", "myself": "themselves", "i am": "they are", "i was": "they were",
    }
)  # fmt: skip

FIRST = re.compile(r"(?<![\w'.])(?:i am|i was|i'm|i've|i'd|i'll|myself|mine|my|me|i)\b(?!['.]\w)", re.IGNORECASE)

PASSING_KINDS = PASSING - {"best", "code", "version"}
"""The same as the last of several words; an access code lasts, and so does a personal best."""

REMEMBERED = "time|day|night|movie|song|one|thing|moment|year|week|person|man|woman|guy|girl|place|book|show|we|you"
"""After "remember that" these begin a reminiscence."""

UNDERSTOOD_HERE = re.compile(r"\w+\s+(?:\w+\s+(?:this|that|it|them|these|those)\b|mind\b)", re.IGNORECASE)
"""An instruction about something in the chat, such as "never do that again"."""
