/** Whether the act succeeded in that time. One that takes longer goes on, unobserved. */
export async function succeedsWithin(milliseconds: number, act: () => Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  const done = act().then(
    () => true,
    () => false,
  );
  try {
    return await Promise.race([done, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
