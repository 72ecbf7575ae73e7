// What went wrong, in a sentence, above everything else.

import type { Explorer } from "../explorer";
import { short } from "../format";

export function Banners({ explorer }: { explorer: Explorer }) {
  const { gone, refused, trouble, opening } = explorer;
  return (
    <>
      {opening !== null && <div class="opening" role="status" data-testid="opening">opening {short(opening, 60)} …</div>}
      {gone && (
        <div class="banner" role="alert" data-testid="gone">
          The server does not answer. Start <code>suffice explore</code> again; this page tries every two seconds.
        </div>
      )}
      {refused && (
        <div class="banner" role="alert" data-testid="refused">
          The server does not know this page's token. Open the address that <code>suffice explore</code> printed.
        </div>
      )}
      {trouble && (
        <div class="banner" role="alert" data-testid="trouble">
          <span>{trouble.message}</span>
          {trouble.sampling && (
            <button type="button" onClick={() => { explorer.dismiss(); void explorer.sample(); }}>answer by sampling</button>
          )}
          <button type="button" class="quiet" onClick={() => explorer.dismiss()}>dismiss</button>
        </div>
      )}
    </>
  );
}
