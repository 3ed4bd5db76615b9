// Performs the actions resize and upload of the example's program, until it is interrupted:
//
//     NATS_URL=nats://127.0.0.1:4222 npm start
//
// With permissions, NATS_USER and NATS_PASSWORD are those of a user with the role performer.
import { connect } from "@nats-io/transport-node";
import { serve, WorkError, type Work } from "./performer.js";

const nc = await connect({
  servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222",
  user: process.env.NATS_USER,
  pass: process.env.NATS_PASSWORD,
  inboxPrefix: "_INBOX_performer",
  maxReconnectAttempts: -1,
});

/** The keyword arguments of a call of a workflow. */
function args<T>(work: Work): T {
  return (work.in as { kwargs: T }).kwargs;
}

const performers = [
  serve(nc, {
    action: "resize",
    slots: 4,
    async perform(work, signal, progress) {
      const { width, pages } = args<{ width: number; pages: number }>(work);
      if (width <= 0) throw new WorkError("BadWidth", `${width} is not positive`, { ancestors: ["BadInput"] });
      for (let page = 1; page <= pages; page++) {
        progress({ page, pages });
        await new Promise((resolve) => setTimeout(resolve, 20));
        if (signal.aborted) {
          console.log(`resize ${work.key}: stopped`);
          throw new Error("stopped");
        }
      }
      console.log(`resize ${work.key}: done`);
      return { width, pages };
    },
  }),
  serve(nc, {
    action: "upload",
    async perform(work) {
      return `${args<{ name: string }>(work).name} by ${work.key}, attempt ${work.attempt}`;
    },
  }),
];

console.log("ready");
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    await Promise.all(performers.map((p) => p.stop()));
    await nc.close();
  });
}
