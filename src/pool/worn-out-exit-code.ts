/** With what a worker exits that cannot go on, before it has touched its next task: that task is given to another. */
export const WORN_OUT_EXIT_CODE = 75;
