// The theme before the first paint, so that no page flashes in the other one: the reader's
// choice, or the system's.
{
  const media = matchMedia('(prefers-color-scheme: dark)')
  const apply = () => {
    let chosen = ''
    try {
      chosen = localStorage.getItem('rollway-theme') ?? ''
    } catch { /* a browser that keeps nothing follows the system */ }
    document.documentElement.dataset.theme = chosen || (media.matches ? 'dark' : 'light')
  }
  media.addEventListener('change', apply)
  apply()
}
