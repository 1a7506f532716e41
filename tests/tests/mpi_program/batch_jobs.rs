//! Jobs of Slurm on emulated hosts: ranks by each of its interfaces, other launchers, and experiments that are requeued.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{FinishedCommand, await_true, finish};
use downbeat_launch::environment;
use downbeat_launch::hosts::Hosts;
use downbeat_launch::slurm::Slurm;

use crate::job::{Failure, Jobs, expect, is_long, test, variable};

const NODES: u32 = 2;
const TASKS_PER_NODE: u32 = 2;
/// Time limit of a command: a job can be ended only minutes after its time limit.
const LIMIT: Duration = Duration::from_secs(240);

/// A command that prints once for each world.
const PRINTS: &str = "completions bash";

#[test]
fn jobs_of_slurm() -> Result<(), Failure> {
    test("batch-jobs", |jobs| {
        let hosts = Hosts::set_up(NODES, &jobs.folder)?;
        let slurm = Slurm::start(&hosts, TASKS_PER_NODE)?;
        let batch = BatchJobs {
            jobs,
            slurm: &slurm,
            downbeat: variable(environment::PROGRAM)?,
            openmpi: jobs.program().display().to_string(),
            mpich: variable(environment::MPICH_PROGRAM)?,
        };
        batch.ranks_of_one_world()?;
        batch.worlds_of_one_rank_are_refused()?;
        batch.ranks_that_are_alone_are_accepted()?;
        batch.a_requeued_experiment_continues("requeued", |job| {
            batch.requeue(job, 0)?;
            batch.await_held("requeued")?;
            batch.requeue(job, 1)
        })?;
        if is_long() {
            batch.a_job_at_its_time_limit_requeues_itself()?;
            batch.a_requeued_experiment_continues("failed-node", |job| {
                // The first node serves the others' files.
                batch.requeue(job, 1)?;
                batch.await_held("failed-node")?;
                hosts.fail(1);
                batch.await_pending(job)?;
                batch.start_on(job, 0)
            })?;
        }
        Ok(())
    })
}

struct BatchJobs<'a> {
    jobs: &'a Jobs,
    slurm: &'a Slurm<'a>,
    downbeat: String,
    openmpi: String,
    mpich: String,
}

impl BatchJobs<'_> {
    fn finish(&self, words: &str) -> Result<FinishedCommand, String> {
        finish(LIMIT, &mut self.slurm.command(words))
    }

    fn ranks_of_one_world(&self) -> Outcome {
        for (interface, program) in [("pmix", &self.openmpi), ("pmi2", &self.mpich)] {
            let job = self.finish(&format!(
                "srun --mpi={interface} -N2 -n4 {program} {PRINTS}"
            ))?;
            prints_once(&job)?;
        }
        let mpirun = self.batch(
            "mpirun",
            &format!("mpirun.openmpi --bind-to none {} {PRINTS}", self.openmpi),
            "-N2 -n4",
        )?;
        prints_once(&mpirun)
    }

    /// Each launcher that the library does not understand.
    fn worlds_of_one_rank_are_refused(&self) -> Outcome {
        let Self { openmpi, mpich, .. } = self;
        for interface in ["none", "pmix"] {
            let job = self.finish(&format!("srun --mpi={interface} -N2 -n4 {mpich} {PRINTS}"))?;
            refused(&job, "SLURM_STEP_NUM_TASKS is 4")?;
            // A script is the task, and the program its child.
            let script = self.script("task", &format!("{mpich} {PRINTS}; exit $?"))?;
            let job = self.finish(&format!("srun --mpi={interface} -n2 sh {script}"))?;
            refused(&job, "SLURM_STEP_NUM_TASKS is 2")?;
        }
        let line = format!("mpirun.openmpi --bind-to none -np 2 {mpich} {PRINTS}");
        refused(
            &self.batch("other-mpirun", &line, "-N1 -n2")?,
            "OMPI_COMM_WORLD_SIZE is 2",
        )?;
        // These end in MPI_Init.
        for line in [
            format!("srun --mpi=none -n2 {openmpi} {PRINTS}"),
            format!("srun --mpi=pmi2 -n2 {openmpi} {PRINTS}"),
        ] {
            let job = self.finish(&line)?;
            expect(
                job.code != Some(0) && job.stdout.is_empty(),
                &job,
                "a failure of MPI_Init",
            )?;
        }
        // A run does not repeat what is refused.
        let out = self.jobs.folder.join("refused");
        let line = format!(
            "{} run -n 2 --out {} -- srun --mpi=none {mpich} bench",
            self.downbeat,
            out.display()
        );
        let job = self.batch("refused-run", &line, "-N1 -n2")?;
        expect(
            job.code == Some(2)
                && !job.stdout.contains("repeating")
                && job.stdout.contains("not repeated"),
            &job,
            "a run that ends with 2 at once",
        )
    }

    /// Programs that are started next to variables of other processes. MPICH's launcher does not find the emulated hosts.
    fn ranks_that_are_alone_are_accepted(&self) -> Outcome {
        let Self { openmpi, mpich, .. } = self;
        for (i, line) in [
            format!("{openmpi} {PRINTS}"),
            format!("{mpich} {PRINTS}"),
            format!("mpirun.openmpi --bind-to none -np 1 {openmpi} {PRINTS}"),
        ]
        .into_iter()
        .enumerate()
        {
            prints_once(&self.batch(&format!("alone-{i}"), &line, "-N2 -n4")?)?;
        }
        // A shell on a terminal is the task, and what is typed there is no rank.
        let typed = self.script("typed", &format!("{mpich} {PRINTS}; exit $?"))?;
        let on_terminal = self.finish(&format!(
            "script -qec 'srun -n2 --mpi=none --pty sh {typed}' /dev/null"
        ))?;
        expect(
            on_terminal.code == Some(0) && on_terminal.stdout.contains("complete -F"),
            &on_terminal,
            "a program on a terminal that is accepted",
        )
    }

    /// Runs an experiment whose second launch is held while `disturb` acts on its job.
    fn a_requeued_experiment_continues(
        &self,
        name: &str,
        disturb: impl Fn(&str) -> Outcome,
    ) -> Outcome {
        let out = self.jobs.folder.join(name);
        let hold = self.hold(name);
        fs::write(&hold, "").map_err(|why| why.to_string())?;
        let line = format!(
            "exec {} run -n 3 --out {} -- sh -c 'if [ {{launch}} = launch-002 ]; then \
             touch {held}; while [ -e {hold} ]; do sleep 0.1; done; fi; exec mpirun.openmpi --bind-to none -np 2 {} bench \
             --clock monotonic --scheme ms1 --reps 20 --out {{out}} --launch {{launch}}'",
            self.downbeat,
            out.display(),
            self.openmpi,
            hold = hold.display(),
            held = self.held(name).display(),
        );
        let job = self.submit(name, &line, "--requeue -N1 -n2 -w node0")?;
        self.await_held(name)?;
        disturb(&job)?;
        self.await_held(name)?;
        fs::remove_file(hold).map_err(|why| why.to_string())?;
        let said = self.ended(name, &job)?;
        let hosts = |launch: u32| {
            let record = fs::read_to_string(out.join(format!("launch-{launch:03}.csv")));
            let record = record.unwrap_or_default();
            let hosts = record
                .lines()
                .find_map(|line| line.strip_prefix("# fact hosts = "));
            hosts.map(str::to_owned)
        };
        let [first, last] = [1, 3].map(hosts);
        if said.stdout.contains("3 launches are complete") && first.is_some() && last.is_some() {
            let moved = first != last;
            return expect(
                moved == said.stdout.contains("ran on node"),
                &said,
                "other hosts that are pointed out",
            );
        }
        expect(false, &said, "a continued experiment")
    }

    /// The script of the documentation, with fewer and shorter launches.
    fn a_job_at_its_time_limit_requeues_itself(&self) -> Outcome {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/clusters.md");
        let page = fs::read_to_string(page).map_err(|why| why.to_string())?;
        let mut scripts = page
            .split("```sh\n")
            .filter_map(|block| block.split("```").next());
        let script = scripts
            .find(|script| script.contains("scontrol requeue"))
            .ok_or("the page has no such script")?;
        let name = "limit";
        let (hold, out) = (self.hold(name), self.jobs.folder.join(name));
        fs::write(&hold, "").map_err(|why| why.to_string())?;
        let held = self.held(name);
        let launched = format!(
            "sh -c 'touch {}; while [ -e {} ]; do sleep 0.1; done; exec srun --mpi=pmix {} bench --clock monotonic \
             --scheme ms1 --reps 20 --out {{out}} --launch {{launch}}'",
            held.display(),
            hold.display(),
            self.openmpi
        );
        let script = script
            .replace("downbeat run -n 30", &format!("{} run -n 2", self.downbeat))
            .replace("\"$HOME/hours\"", &out.display().to_string())
            .replace("srun --mpi=pmix downbeat-mpi bench", &launched)
            .replace("TERM@60", "TERM@30")
            .replace(
                "--nodes=4 --ntasks-per-node=16 --time=1:00:00",
                "--nodes=1 --ntasks-per-node=2 --time=1",
            );
        let job = self.submit(name, &script, "")?;
        self.await_held(name)?;
        // It is still held when the signal comes.
        self.await_pending(&job)?;
        self.start_on(&job, 0)?;
        self.await_held(name)?;
        fs::remove_file(hold).map_err(|why| why.to_string())?;
        let said = self.ended(name, &job)?;
        expect(
            said.stdout.contains("stopped by SIGTERM")
                && said.stdout.contains("2 launches are complete"),
            &said,
            "a job that requeued itself",
        )
    }

    fn hold(&self, name: &str) -> PathBuf {
        self.jobs.folder.join(format!("{name}.hold"))
    }

    fn held(&self, name: &str) -> PathBuf {
        self.jobs.folder.join(format!("{name}.held"))
    }

    /// Waits until the experiment is held, which is then forgotten.
    fn await_held(&self, name: &str) -> Outcome {
        await_true("launch that is held", LIMIT, || self.held(name).exists())?;
        fs::remove_file(self.held(name)).map_err(|why| why.to_string())
    }

    fn output(&self, name: &str) -> PathBuf {
        self.jobs.folder.join(format!("{name}.out"))
    }

    /// Submits a script of these lines; returns the number of the job.
    fn submit(&self, name: &str, lines: &str, options: &str) -> Result<String, String> {
        let (output, path) = (self.output(name), self.script(name, lines)?);
        let words = format!(
            "sbatch --parsable {options} --open-mode=append -o {} {path}",
            output.display()
        );
        let submitted = self.finish(&words)?;
        expect(submitted.code == Some(0), &submitted, "a job")?;
        Ok(submitted.stdout.trim().to_owned())
    }

    /// Writes a script of these lines; returns its path.
    fn script(&self, name: &str, lines: &str) -> Result<String, String> {
        let path = self.jobs.folder.join(format!("{name}.sh"));
        let head = if lines.starts_with("#!") {
            ""
        } else {
            "#!/bin/sh\n"
        };
        fs::write(&path, format!("{head}{lines}\n")).map_err(|why| why.to_string())?;
        Ok(path.display().to_string())
    }

    /// Waits for the end of a job; returns its exit code and output.
    fn ended(&self, name: &str, job: &str) -> Result<FinishedCommand, String> {
        await_true("end of the job", LIMIT, || {
            !matches!(
                self.state(job).as_str(),
                "PENDING" | "CONFIGURING" | "RUNNING" | "COMPLETING" | "REQUEUED" | "SUSPENDED"
            )
        })?;
        let shown = self.finish(&format!("scontrol show job {job}"))?.stdout;
        let code = shown.split_whitespace().find_map(|word| {
            word.strip_prefix("ExitCode=")?
                .split(':')
                .next()?
                .parse()
                .ok()
        });
        Ok(FinishedCommand {
            code,
            stdout: fs::read_to_string(self.output(name)).unwrap_or_default(),
            stderr: shown,
        })
    }

    fn batch(&self, name: &str, line: &str, options: &str) -> Result<FinishedCommand, String> {
        let job = self.submit(name, line, options)?;
        self.ended(name, &job)
    }

    /// Returns the state of a job, nothing once it is forgotten.
    fn state(&self, job: &str) -> String {
        let asked = self.finish(&format!("squeue -h -t all -j {job} -o %T"));
        asked.map_or_else(|_| String::new(), |asked| asked.stdout.trim().to_owned())
    }

    fn requeue(&self, job: &str, node: u32) -> Outcome {
        let requeued = self.finish(&format!("scontrol requeue {job}"))?;
        expect(requeued.code == Some(0), &requeued, "a requeued job")?;
        self.await_pending(job)?;
        self.start_on(job, node)
    }

    fn await_pending(&self, job: &str) -> Outcome {
        await_true("pending job", LIMIT, || self.state(job) == "PENDING")
    }

    /// Starts a pending job at once: Slurm would wait for minutes. It is asked until the
    /// job runs, since the end of the job's last script sets the time of the next start
    /// once more.
    fn start_on(&self, job: &str, node: u32) -> Outcome {
        let starts_now =
            format!("scontrol update JobId={job} StartTime=now ReqNodeList=node{node}");
        await_true("job that starts again", LIMIT, || {
            let state = self.state(job);
            if state == "PENDING" {
                // It may start just before that, and then refuses.
                let _ = self.finish(&starts_now);
                thread::sleep(Duration::from_secs(1));
            }
            state == "RUNNING"
        })
    }
}

/// Checks that one world printed, and nothing was refused.
fn prints_once(job: &FinishedCommand) -> Outcome {
    let worlds = job.stdout.matches("complete -F").count();
    // The script has that line once for each version of the shell.
    let is_once = job.code == Some(0) && worlds > 0 && worlds <= 2;
    expect(is_once, job, "one world")
}

fn refused(job: &FinishedCommand, claim: &str) -> Outcome {
    // A batch job writes both to one file.
    let said = format!("{}{}", job.stdout, job.stderr);
    expect(
        job.code == Some(2)
            && said.contains(&format!("downbeat-mpi: {claim}, but"))
            && !said.contains("complete -F"),
        job,
        &format!("{claim}, refused"),
    )
}
