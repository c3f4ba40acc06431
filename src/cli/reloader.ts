/** Does something again whenever it is asked for, never twice at a time. */
export interface Reloader {
  /** However often it is asked for while it is being done, it is done once more. */
  ask(): void;
}

/** @param reload Never rejects. */
export function createReloader(reload: () => Promise<void>): Reloader {
  let isRunning = false;
  let isAsked = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (isAsked) {
      isAsked = false;
      await reload();
    }
    isRunning = false;
  }

  return {
    ask() {
      isAsked = true;
      if (!isRunning) void run();
    },
  };
}
