"""What is on the screen as Python and as commands."""

from __future__ import annotations

from expmech.explore.panels.base import Panel
from expmech.explore.questions import snippets
from expmech.explore.view import View
from expmech.ledger.amounts import show_amount


def code(view: View, width: int) -> Panel:
    """Return a script that prints the twenty draws, and the commands that print the plan."""
    state = view.state
    epsilon = show_amount(state.epsilon)
    script = snippets.script(view.question.code(state), epsilon=epsilon, seed=state.seed)
    parts = [("Python: the twenty draws", script)]
    command = view.question.command(state)
    if command is None:
        sentences = ("The command line has no command for this law; the library has.",)
    else:
        lines = [f"expmech plan {command} --adjacency replace --epsilon {epsilon}"]
        if view.error is not None:
            lines.append(f"expmech plan {command} --adjacency replace --error {view.error:.3g}")
        parts.append(("Command line: the plan, and back from the error", "\n".join(lines) + "\n"))
        sentences = ("The commands read no data: a plan is made of public numbers.",)
    return Panel(title="The same without a browser", sentences=sentences, code=tuple(parts))
