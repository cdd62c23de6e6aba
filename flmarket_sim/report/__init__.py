"""What people see: tables, figures and pages. As a call it writes a page: `fm.report(run)`."""

from flmarket_sim.callable_room import call

call(__name__, "flmarket_sim.results.report_page:report")
