"""The command that estimates what a run will need."""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from elmo_zh.cli.options import Common, common_options_of_readers, reading_options, takes
from elmo_zh.cli.stages import changed, corpus_argument, run_option, stage_context, start_option, starting_from
from elmo_zh.invocation import command
from elmo_zh.language import _
from elmo_zh.planning import PlanLimits
from elmo_zh.run.layout import RunDir
from elmo_zh.run.stage_table import STAGES


@click.command()
@corpus_argument
@run_option("Use this run's settings, and save the plan as RUN/plan.json.", required=False)
@takes(PlanLimits, "limits")
@start_option
@reading_options
@common_options_of_readers
def plan(
    common: Common, /, corpus: tuple[str, ...], run_path: Path | None, limits: PlanLimits, init: Path | None
) -> None:
    """Estimate a run's time, memory and disk space from a sample.

    Use it before a long run to choose a configuration. CORPUS is text in any format that the segment command reads. The
    stages are run on a sample of the corpus, and their figures are scaled up: the numbers of documents, characters,
    tokens and distinct words; how much of the text its most frequent words cover; the time and disk space of each stage
    on this machine; and the memory that training needs. With --init, the plan is for the run that pipeline would start
    from that model.

    \b
    Example:
      elmo-zh plan my-texts/ --run runs/mine
      elmo-zh plan zhwiki-latest-pages-articles-multistream.xml.bz2 --config configs/base.toml
      elmo-zh plan news.jsonl.gz --field data.text --no-training
      elmo-zh plan statutes.txt --init starter
    """
    from elmo_zh.corpus.sources import gathered_sources
    from elmo_zh.planning.plan import describe_plan, make_plan
    from elmo_zh.run.files import require_no_input, write_json
    from elmo_zh.stages.inputs import find_user_dictionary

    with ExitStack() as stack:
        path = run_path or Path(stack.enter_context(TemporaryDirectory(prefix="elmo-zh-plan-")))
        run = RunDir(path)
        typed = changed(common.config, starting_from(common, init, "vocab", "train"))
        config = stage_context(common, run, typed, STAGES).config
        if run_path:
            stack.enter_context(run.locked(create=True))
        sources = stack.enter_context(gathered_sources(corpus, run.path, run.fetched))
        sources.report_skipped(common.console)
        dictionary = find_user_dictionary(run, config)
        estimates = make_plan(sources, config, dictionary, limits, common.console)
        if run_path:
            sources_read = [source.path for source in sources.sources]
            require_no_input(run.plan, sources_read, _("Choose another {option}.").format(option="--run"))
            write_json(run.plan, estimates)
    following = []
    if run_path:
        typed_next = command("pipeline", *corpus, "--run", run_path, *(("--init", init) if init else ()))
        following = [_("Next: {command}").format(command=typed_next)]
    from elmo_zh.bundle.find_bundle import starter_advice

    advice = starter_advice(config, estimates["figures"]["tokens"])
    common.finish(estimates, *describe_plan(estimates), *advice, *following)
